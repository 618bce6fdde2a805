import { limits } from "../../shared/limits.ts";
import type { Disk } from "../storage/mod.ts";
import { areasKept } from "./areas.ts";
import type { Batch } from "./batch.ts";
import type { ChainEnd } from "./batchHeader.ts";
import type { CommitFile } from "./commitFile.ts";
import type { Committer, CommitterEvents } from "./committer.ts";
import type { Counters } from "./counters.ts";

export interface DiskStart {
  readonly disk: Disk;
  readonly areaBytes: number;
  readonly chain: ChainEnd;
  readonly term: number;
  readonly counters: Counters;
}

/**
 * The committer that needs no native code: batches are completed here and written through the disk port.
 * Invariant: durableSeq ≤ seq, and every batch between is in flight.
 */
export class DiskCommitter implements Committer {
  readonly inFlightMax: number = limits.journalBatchesInFlightMax;
  readonly memory: Uint8Array;
  readonly #disk: Disk;
  readonly #term: number;
  readonly #counters: Counters;
  #events: CommitterEvents | undefined;
  #giveBack: ((area: Uint8Array) => void) | undefined;
  readonly #inFlight: Batch[] = [];
  readonly #writes = new Set<Promise<void>>();
  #seq: number;
  #durableSeq: number;
  /** Header CRC of the last batch submitted. */
  #crc: number;

  constructor(start: DiskStart) {
    this.#disk = start.disk;
    this.memory = start.disk.allocate(areasKept * start.areaBytes);
    this.#term = start.term;
    this.#counters = start.counters;
    this.#seq = start.chain.seq;
    this.#durableSeq = start.chain.seq;
    this.#crc = start.chain.crc;
  }

  serve(events: CommitterEvents, giveBack: (area: Uint8Array) => void): void {
    this.#events = events;
    this.#giveBack = giveBack;
  }

  allocate(bytes: number): Uint8Array {
    return this.#disk.allocate(bytes);
  }

  get inFlight(): number {
    return this.#inFlight.length;
  }

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
        this.#events?.onFailed(error);
      },
    );
    this.#writes.add(write);
  }

  /** Completions tell by themselves. */
  look(): void {}

  close(): void {}

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
      this.#giveBack?.(first.area);
    }
    if (lastLsn !== undefined) {
      this.#events?.onAdvance(lastLsn);
    }
  }
}
