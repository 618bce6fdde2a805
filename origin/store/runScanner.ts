import { ForebayError } from "../../shared/errors/mod.ts";
import { readFully } from "../storage/mod.ts";
import type { Counters } from "./counters.ts";
import type { Run } from "./run.ts";
import { type ChunkPlace, tableEntryBytes } from "./runIndex.ts";

const windowBytes = 256 * 1024;

/** Goes through a run's chunks in order, which is the order in which they lie in the file. */
export class RunScanner {
  readonly run: Run;
  readonly #counters: Counters;
  #next = 0;
  #window = new Uint8Array(0);
  #position = 0;

  constructor(run: Run, counters: Counters) {
    this.run = run;
    this.#counters = counters;
  }

  /** The chunk to come; null after the last one. */
  get place(): ChunkPlace | null {
    const { index } = this.run;
    return index === null || this.#next >= index.size ? null : index.chunk(this.#next);
  }

  skip(): void {
    this.#next += 1;
  }

  /** Payload and table of the chunk to come, as they lie in the file: a view, valid until the next call. */
  async bytes(place: ChunkPlace): Promise<Uint8Array> {
    const length = place.payloadBytes + place.records * tableEntryBytes;
    let from = place.place - this.#position;
    if (from < 0 || from + length > this.#window.length) {
      this.#window = new Uint8Array(Math.max(length, windowBytes));
      this.#position = place.place;
      from = 0;
      this.#counters.bytesRead += await this.#fill();
    }
    return this.#window.subarray(from, from + length);
  }

  async #fill(): Promise<number> {
    try {
      return await readFully(this.run.file, this.#window, this.#position);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      const message = `${this.run.path} cannot be read at ${this.#position}: ${reason}`;
      throw new ForebayError("store_failed", message, { cause });
    }
  }
}
