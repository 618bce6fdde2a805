import { pairedRatio, quartiles, rounded } from "./statistics.ts";

/** One number per round, by name. */
export class Samples {
  readonly #byName = new Map<string, number[]>();

  add(name: string, value: number): void {
    const list = this.#byName.get(name) ?? [];
    list.push(value);
    this.#byName.set(name, list);
  }

  of(name: string): number[] {
    const list = this.#byName.get(name);
    if (list === undefined) {
      throw new Error(`nothing was measured as ${name}`);
    }
    return list;
  }

  median(name: string): number {
    return quartiles(this.of(name)).median;
  }

  ratio(ours: string, theirs: string): number {
    return rounded(pairedRatio(this.of(ours), this.of(theirs)).median);
  }
}
