import type { Areas } from "./areas.ts";
import type { Batch } from "./batch.ts";
import type { ChainEnd } from "./batchHeader.ts";
import type { CommitFile } from "./commitFile.ts";
import type { Counters } from "./counters.ts";

export interface CommitterEvents {
  /** Every batch up to here is on the device; called once per advance. */
  onAdvance(lastLsn: number): void;
  onFailed(error: unknown): void;
}

/**
 * Batches in flight. Writes overlap and finish in any order; they are acknowledged strictly in the order of
 * their seq. Invariant: durableSeq ≤ seq, and every batch between is in flight.
 */
export class Committer {
  readonly #term: number;
  readonly #areas: Areas;
  readonly #counters: Counters;
  readonly #events: CommitterEvents;
  readonly #inFlight: Batch[] = [];
  readonly #writes = new Set<Promise<void>>();
  #seq: number;
  #durableSeq: number;
  /** Header CRC of the last batch submitted. */
  #crc: number;

  constructor(
    start: { chain: ChainEnd; term: number; areas: Areas; counters: Counters },
    events: CommitterEvents,
  ) {
    this.#term = start.term;
    this.#areas = start.areas;
    this.#counters = start.counters;
    this.#events = events;
    this.#seq = start.chain.seq;
    this.#durableSeq = start.chain.seq;
    this.#crc = start.chain.crc;
  }

  get inFlight(): number {
    return this.#inFlight.length;
  }

  /** Writes a batch to the active segment, which `salt` belongs to. */
  submit(batch: Batch, file: CommitFile, salt: number): void {
    const { blocks, crc } = batch.seal({
      term: this.#term,
      seq: ++this.#seq,
      durableSeq: this.#durableSeq,
      previousCrc: this.#crc,
      salt,
    });
    this.#crc = crc;
    this.#inFlight.push(batch);
    this.#counters.batches += 1;
    const write = file.write(blocks, batch.place.position).then(
      () => {
        this.#writes.delete(write);
        this.#completed(batch);
      },
      (error: unknown) => {
        this.#writes.delete(write);
        this.#events.onFailed(error);
      },
    );
    this.#writes.add(write);
  }

  /** Resolves when no write is under way, however they ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#writes);
  }

  /** A failed batch stays at the front for good: nothing behind it is ever acknowledged. */
  #completed(batch: Batch): void {
    batch.done = true;
    let lastLsn: number | undefined;
    for (let first = this.#inFlight[0]; first?.done === true; first = this.#inFlight[0]) {
      this.#inFlight.shift();
      this.#durableSeq = first.seq;
      lastLsn = first.lastLsn;
      this.#areas.giveBack(first.area);
    }
    if (lastLsn !== undefined) {
      this.#events.onAdvance(lastLsn);
    }
  }
}
