import type { Disk } from "../storage/mod.ts";

const areasKept = 8;

/** Memory that batches are built in: a few areas of one size, used again and again, and one-off larger ones. */
export class Areas {
  readonly #disk: Disk;
  readonly #areaBytes: number;
  readonly #free: Uint8Array[] = [];

  constructor(disk: Disk, areaBytes: number) {
    this.#disk = disk;
    this.#areaBytes = areaBytes;
    const memory = disk.allocate(areasKept * areaBytes);
    for (let i = 0; i < areasKept; i++) {
      this.#free.push(memory.subarray(i * areaBytes, (i + 1) * areaBytes));
    }
  }

  /** At least `bytes`. */
  take(bytes: number): Uint8Array {
    if (bytes > this.#areaBytes) {
      return this.#disk.allocate(bytes);
    }
    return this.#free.pop() ?? this.#disk.allocate(this.#areaBytes);
  }

  giveBack(area: Uint8Array): void {
    if (area.length === this.#areaBytes && this.#free.length < areasKept) {
      this.#free.push(area);
    }
  }
}
