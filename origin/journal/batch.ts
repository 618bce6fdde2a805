import { crc32c } from "../native/mod.ts";
import { encodeBatchHeader } from "./batchHeader.ts";
import { batchHeaderBytes, entryHeaderBytes, padded, viewOf } from "./layout.ts";

/** What only the moment of submission knows of a batch. */
export interface Submission {
  readonly term: number;
  readonly seq: number;
  readonly durableSeq: number;
  readonly previousCrc: number;
  readonly salt: number;
}

/** Where a batch goes: decided when its first entry is taken. */
export interface Place {
  readonly generation: number;
  readonly position: number;
}

/** Entries that are written and synced together, in the memory they are written from. */
export class Batch {
  readonly area: Uint8Array;
  readonly place: Place;
  readonly flags: number;
  readonly firstLsn: number;
  /** Entries are taken up to here; set lower, the batch takes no more. */
  limit: number;
  end: number = batchHeaderBytes;
  entries = 0;
  seq = 0;
  /** The write has resolved. */
  done = false;
  readonly #view: DataView;

  constructor(
    area: Uint8Array,
    place: Place,
    what: { firstLsn: number; limit: number; flags: number },
  ) {
    this.area = area;
    this.place = place;
    this.flags = what.flags;
    this.firstLsn = what.firstLsn;
    this.limit = what.limit;
    this.#view = viewOf(area);
  }

  get lastLsn(): number {
    return this.firstLsn + this.entries - 1;
  }

  /** Bytes it takes in the segment. */
  get bytes(): number {
    return padded(this.end);
  }

  takes(length: number): boolean {
    return this.end + entryHeaderBytes + length <= this.limit;
  }

  /** The caller has checked that the batch `takes` it. `length`: of all parts together. */
  add(parts: readonly Uint8Array[], length: number): void {
    this.#view.setUint32(this.end, length, true);
    let at = this.end + entryHeaderBytes;
    for (const part of parts) {
      this.area.set(part, at);
      at += part.length;
    }
    this.end = at;
    this.entries += 1;
  }

  /** Writes header and padding; the blocks to be written, and the header's CRC for the next batch. */
  seal(submission: Submission): { blocks: Uint8Array; crc: number } {
    const { area, end } = this;
    area.fill(0, end, this.bytes);
    const length = end - batchHeaderBytes;
    const { term, seq, durableSeq, previousCrc, salt } = submission;
    this.seq = seq;
    const crc = encodeBatchHeader(
      area,
      {
        flags: this.flags,
        generation: this.place.generation,
        term,
        seq,
        firstLsn: this.firstLsn,
        durableSeq,
        length,
        entries: this.entries,
        previousCrc,
        payloadCrc: crc32c(area, batchHeaderBytes, length, 0),
      },
      salt,
    );
    return { blocks: area.subarray(0, this.bytes), crc };
  }
}
