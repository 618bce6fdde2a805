import type { Random } from "../../shared/ports/mod.ts";
import { seededRandom } from "../origin/seededRandom.ts";

/** Choices drawn from one seed. */
export class Choice {
  readonly #random: Random;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  /** 0 … below `n` */
  below(n: number): number {
    return Math.floor(this.#random.next() * n);
  }

  chance(p: number): boolean {
    return this.#random.next() < p;
  }

  of<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }

  /** The plain one, or one of the odd ones with chance `p`. */
  usually(plain: string, odd: readonly string[], p = 0.1): string {
    return this.chance(p) ? this.of(odd) : plain;
  }
}
