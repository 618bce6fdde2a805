import type { Clock } from "../ports/mod.ts";

/** How a wait ended: the mark was reached, the time was up, or the sender ended before. */
export type AckWait = "reached" | "timeout" | "closed";

interface Waiter {
  readonly mark: number;
  readonly settle: (how: AckWait) => void;
}

/**
 * Calls that wait until a mark (an FSN, or a row that names one) is acknowledged (F22): woken by every advance that
 * reaches them, by the sender's end, or when their time is up.
 */
export class AckWaiters {
  readonly #clock: Clock;
  readonly #waiting = new Set<Waiter>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#waiting.size;
  }

  async wait(mark: number, ms: number): Promise<AckWait> {
    const { promise, resolve } = Promise.withResolvers<AckWait>();
    const waiter = { mark, settle: resolve };
    this.#waiting.add(waiter);
    const timer = this.#clock.after(ms, () => resolve("timeout"));
    try {
      return await promise;
    } finally {
      timer.cancel();
      this.#waiting.delete(waiter);
    }
  }

  /** Marks up to `mark` are settled: acknowledged, given up or lost. */
  advance(mark: number): void {
    for (const waiter of this.#waiting) {
      if (waiter.mark <= mark) {
        waiter.settle("reached");
      }
    }
  }

  /** The sender has ended; nobody will advance any more. */
  close(): void {
    for (const waiter of this.#waiting) {
      waiter.settle("closed");
    }
  }
}
