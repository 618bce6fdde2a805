const backoffMsMin = 250;
const backoffMsMax = 60_000;

/** Full jitter: uniform in [0, min(60 s, 250 ms · 2ⁿ)) after n failures before this one. */
export function backoffMs(failuresBefore: number, random: number): number {
  return Math.floor(random * Math.min(backoffMsMax, backoffMsMin * 2 ** failuresBefore));
}
