import type { Clock } from "../../shared/ports/mod.ts";

/** Node fires a timer longer than this at once, so longer waits are made of steps. */
const timerMsMax = 2 ** 31 - 1;

/** The machine's clock. Its timers are unref'd: waiting for a deadline never keeps the process alive. */
export const clock: Clock = {
  now: () => Date.now(),
  after(ms, fire) {
    let left = ms;
    let timer = arm();
    function arm(): NodeJS.Timeout {
      const step = Math.min(left, timerMsMax);
      left -= step;
      return setTimeout(step === timerMsMax && left > 0 ? next : fire, step).unref();
    }
    function next(): void {
      timer = arm();
    }
    return {
      cancel(): void {
        clearTimeout(timer);
      },
    };
  },
};
