/** Areas kept for use again and again. */
export const areasKept = 8;

/** Where the memory of batches comes from: what a committer's writes can be made from. */
export interface AreaSource {
  /** `areasKept` areas back to back. */
  readonly memory: Uint8Array;
  /** One more area, of at least `bytes`. */
  allocate(bytes: number): Uint8Array;
}

/** Memory that batches are built in: a few areas of one size, used again and again, and one-off larger ones. */
export class Areas {
  readonly #source: AreaSource;
  readonly #areaBytes: number;
  readonly #free: Uint8Array[] = [];

  constructor(source: AreaSource, areaBytes: number) {
    this.#source = source;
    this.#areaBytes = areaBytes;
    for (let i = 0; i < areasKept; i++) {
      this.#free.push(source.memory.subarray(i * areaBytes, (i + 1) * areaBytes));
    }
  }

  /** At least `bytes`. */
  take(bytes: number): Uint8Array {
    if (bytes > this.#areaBytes) {
      return this.#source.allocate(bytes);
    }
    return this.#free.pop() ?? this.#source.allocate(this.#areaBytes);
  }

  giveBack(area: Uint8Array): void {
    if (area.length === this.#areaBytes && this.#free.length < areasKept) {
      this.#free.push(area);
    }
  }
}
