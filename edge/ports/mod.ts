import type { Clock, Random, Timer } from "../../shared/ports/mod.ts";

/**
 * The world as workerd gives it. `Date.now` there advances only with I/O, timers included, and a timer belongs to the
 * request (or object) that made it: it never fires in another one's context and dies with it.
 */
export const clock: Clock = {
  now(): number {
    return Date.now();
  },
  after(ms: number, fire: () => void): Timer {
    const id = setTimeout(fire, ms);
    return {
      cancel(): void {
        clearTimeout(id);
      },
    };
  },
};

export const random: Random = {
  next(): number {
    return Math.random();
  },
  bytes(n: number): Uint8Array {
    return crypto.getRandomValues(new Uint8Array(n));
  },
};
