import type { Clock } from "../../shared/ports/mod.ts";

interface Armed {
  readonly at: number;
  readonly fire: () => void;
}

/** Time stands still until `advance`. */
export class ManualClock implements Clock {
  readonly armed = new Set<Armed>();
  #now: number;

  constructor(now = 1_700_000_000_000) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  after(ms: number, fire: () => void): { cancel(): void } {
    const timer = { at: this.#now + ms, fire };
    this.armed.add(timer);
    return {
      cancel: () => {
        this.armed.delete(timer);
      },
    };
  }

  advance(ms: number): void {
    this.#now += ms;
    const due = [...this.armed].filter((timer) => timer.at <= this.#now);
    for (const timer of due.toSorted((a, b) => a.at - b.at)) {
      this.armed.delete(timer);
      timer.fire();
    }
  }
}
