const waitMsMin = 4;
const waitMsMax = 1024;

/** How long to wait before the next try: 4 ms after the first failure, then twice as long up to 1.024 s. */
export function nextBackoffMs(lastMs: number): number {
  return Math.min(waitMsMax, Math.max(waitMsMin, lastMs * 2));
}
