import { type DiskFile, writeFully } from "../storage/mod.ts";
import type { Counters } from "./counters.ts";

const writeBytes = 256 * 1024;
const writesInFlightMax = 2;
/** Dirty pages are given to the disk in this measure, so that the sync at the end is no stall for the journal. */
const syncEveryBytes = 8 * 1024 * 1024;

/**
 * Writes a file from its beginning to its end: collects bytes into writes of 256 KiB, two in flight. `write` only
 * copies; whoever writes awaits `drained` from time to time, or the bytes pile up in memory.
 */
export class SequentialFile {
  readonly #file: DiskFile;
  readonly #counters: Counters;
  readonly #full: Uint8Array<ArrayBuffer>[] = [];
  readonly #free: Uint8Array<ArrayBuffer>[] = [];
  readonly #inFlight: Set<Promise<void>> = new Set();
  #current = new Uint8Array(writeBytes);
  #used = 0;
  /** Where the next full buffer goes. */
  #place = 0;
  #unsynced = 0;
  #failure: Error | null = null;

  constructor(file: DiskFile, counters: Counters) {
    this.#file = file;
    this.#counters = counters;
  }

  /** Bytes written so far: where the next ones will lie. */
  get length(): number {
    return this.#place + this.#full.length * writeBytes + this.#used;
  }

  write(bytes: Uint8Array): void {
    let from = 0;
    while (from < bytes.length) {
      const more = Math.min(bytes.length - from, writeBytes - this.#used);
      this.#current.set(bytes.subarray(from, from + more), this.#used);
      this.#used += more;
      from += more;
      if (this.#used === writeBytes) {
        this.#full.push(this.#current);
        this.#current = this.#free.pop() ?? new Uint8Array(writeBytes);
        this.#used = 0;
      }
    }
  }

  /** Begins the writes that may be begun, and resolves when no full buffer waits any more. */
  async drained(): Promise<void> {
    for (let next = this.#full.shift(); next !== undefined; next = this.#full.shift()) {
      while (this.#inFlight.size >= writesInFlightMax) {
        await Promise.race(this.#inFlight);
        this.#check();
      }
      if (this.#unsynced >= syncEveryBytes) {
        this.#unsynced = 0;
        await this.#file.sync();
      }
      this.#begin(next, writeBytes);
    }
    this.#check();
  }

  /** Writes what is left, puts `head` over the beginning, and makes all of it durable. */
  async finish(head: Uint8Array): Promise<void> {
    await this.drained();
    if (this.#used > 0) {
      this.#begin(this.#current.subarray(0, this.#used), this.#used);
      this.#used = 0;
    }
    await this.settled();
    this.#check();
    await writeFully(this.#file, head, 0);
    this.#counters.bytesWritten += head.length;
    await this.#file.sync();
  }

  /** Nothing is in flight any more; never rejects. */
  async settled(): Promise<void> {
    await Promise.all(this.#inFlight);
  }

  #begin(bytes: Uint8Array<ArrayBuffer>, length: number): void {
    const place = this.#place;
    this.#place += length;
    this.#unsynced += length;
    this.#counters.bytesWritten += length;
    const done = writeFully(this.#file, bytes, place).then(
      () => {
        this.#inFlight.delete(done);
        this.#free.push(bytes);
      },
      (error: unknown) => {
        this.#inFlight.delete(done);
        this.#failure ??= error as Error;
      },
    );
    this.#inFlight.add(done);
  }

  #check(): void {
    if (this.#failure !== null) {
      throw this.#failure;
    }
  }
}
