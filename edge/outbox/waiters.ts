import type { Clock } from "../../shared/ports/mod.ts";

interface Waiter {
  readonly row: number;
  readonly wake: () => void;
}

/** Calls that wait until a row is acknowledged (F22): woken by every advance that reaches them, or when their time is up. */
export class AckWaiters {
  readonly #clock: Clock;
  readonly #waiting = new Set<Waiter>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#waiting.size;
  }

  async wait(row: number, ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiter = { row, wake: resolve };
    this.#waiting.add(waiter);
    const timer = this.#clock.after(ms, resolve);
    try {
      await promise;
    } finally {
      timer.cancel();
      this.#waiting.delete(waiter);
    }
  }

  /** Rows up to `row` are settled: acknowledged, given up or lost. */
  advance(row: number): void {
    for (const waiter of this.#waiting) {
      if (waiter.row <= row) {
        waiter.wake();
      }
    }
  }
}
