import { ForebayError } from "../../shared/errors/mod.ts";

/**
 * The bytes of requests that wait or fly, all lanes of this isolate together: permit first, then the queue.
 * Invariant: 0 ≤ held ≤ max.
 */
export class PendingBudget {
  readonly #max: number;
  #held = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get heldBytes(): number {
    return this.#held;
  }

  /** @throws ForebayError `edge_overloaded`, with nothing taken */
  take(bytes: number): void {
    if (this.#held + bytes > this.#max) {
      throw new ForebayError(
        "edge_overloaded",
        `${this.#held} bytes wait at this edge and ${bytes} more would pass its limit of ${this.#max}; nothing was stored`,
      );
    }
    this.#held += bytes;
  }

  release(bytes: number): void {
    this.#held -= bytes;
  }
}
