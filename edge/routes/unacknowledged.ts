import type { RequestResult } from "../../shared/frame/mod.ts";

/** `ack=none` is counted apart (DESIGN, promise 5): taken = landed + refused + under way. */
export class Unacknowledged {
  #taken = 0;
  #landed = 0;
  #refused = 0;

  /** Never rejects, for `waitUntil`. `work` ends with the origin's result, or with the outbox's word by returning. */
  async watch(work: Promise<RequestResult | { readonly position: string }>): Promise<void> {
    this.#taken += 1;
    try {
      const result = await work;
      if ("code" in result && result.code !== null) {
        this.#refused += 1;
      } else {
        this.#landed += 1;
      }
    } catch {
      this.#refused += 1;
    }
  }

  stats(): { readonly taken: number; readonly landed: number; readonly refused: number } {
    return { taken: this.#taken, landed: this.#landed, refused: this.#refused };
  }
}
