import type { Clock, Timer } from "../../shared/ports/mod.ts";

interface Due {
  readonly at: number;
  readonly fire: () => void;
}

/** What is due when, by key, over one timer that is armed only while something is due. */
export class Deadlines {
  readonly #clock: Clock;
  readonly #due: Map<unknown, Due> = new Map();
  #timer: Timer | null = null;
  #armedFor = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Replaces what was due under `key`. */
  set(key: unknown, afterMs: number, fire: () => void): void {
    const at = this.#clock.now() + afterMs;
    this.#due.set(key, { at, fire });
    if (at < this.#armedFor) {
      this.#arm(at);
    }
  }

  clear(key: unknown): void {
    if (this.#due.delete(key) && this.#due.size === 0) {
      this.close();
    }
  }

  /** When what is under `key` is due, ms since 1970; null when nothing is. */
  at(key: unknown): number | null {
    return this.#due.get(key)?.at ?? null;
  }

  close(): void {
    this.#due.clear();
    this.#timer?.cancel();
    this.#timer = null;
    this.#armedFor = Number.POSITIVE_INFINITY;
  }

  #arm(at: number): void {
    this.#timer?.cancel();
    this.#armedFor = at;
    this.#timer = this.#clock.after(Math.max(0, at - this.#clock.now()), () => this.#fire());
  }

  #fire(): void {
    this.#timer = null;
    this.#armedFor = Number.POSITIVE_INFINITY;
    const now = this.#clock.now();
    for (const [key, due] of this.#due) {
      // A Map shows its walker what earlier ones took away or set anew meanwhile.
      if (due.at <= now) {
        this.#due.delete(key);
        due.fire();
      }
    }
    let next = Number.POSITIVE_INFINITY;
    for (const { at } of this.#due.values()) {
      next = Math.min(next, at);
    }
    if (next < this.#armedFor) {
      this.#arm(next);
    }
  }
}
