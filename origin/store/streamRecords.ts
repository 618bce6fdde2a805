import { invariant } from "../../shared/errors/mod.ts";
import type { RecordPlace } from "./types.ts";

const firstChunkBytes = 256;
const chunkBytesMax = 1024 * 1024;
const firstEnds = 8;

/**
 * A range of one stream's records, growing at its end: chunks that hold many records each, and tables of where records
 * end and of their times. FORMAT.md draws it. A record is never split, so that it can be given out as one view.
 *
 * Invariants: `bases[i]` is the position of chunk i's first byte and rises; only the last chunk grows;
 * `ends` rises, and `ends[n-1] - (n > 1 ? ends[n-2] : base)` is the length of record first + n-1.
 */
export class StreamRecords {
  /** Number of the first record. */
  readonly first: number;
  readonly #base: number;
  #chunks: Uint8Array[] = [];
  #bases: number[] = [];
  #used = 0;
  #ends = new Float64Array(firstEnds);
  #times = new Float64Array(firstEnds);
  #count = 0;
  #bytesHeld: number = firstEnds * 16;

  constructor({ record, byte }: RecordPlace) {
    this.first = record;
    this.#base = byte;
  }

  /** Number of the record after the last one. */
  get next(): number {
    return this.first + this.#count;
  }

  get bytesHeld(): number {
    return this.#bytesHeld;
  }

  /** The position at which record `record` begins; `first ≤ record ≤ next`. */
  position(record: number): number {
    return record === this.first ? this.#base : (this.#ends[record - this.first - 1] ?? 0);
  }

  time(record: number): number {
    return this.#times[record - this.first] ?? 0;
  }

  append(record: Uint8Array, time: number): void {
    const length = record.length;
    const end = this.position(this.next);
    let chunk = this.#chunks[this.#chunks.length - 1];
    if (chunk === undefined || this.#used + length > chunk.length) {
      chunk = this.#open(end, length, chunk);
    }
    chunk.set(record, this.#used);
    this.#used += length;
    if (this.#count === this.#ends.length) {
      this.#growTables();
    }
    this.#ends[this.#count] = end + length;
    this.#times[this.#count] = time;
    this.#count += 1;
  }

  /** Pushes the views of records `from` … as far as `to` and `maxBytes` allow, at least one. */
  read(from: number, to: number, maxBytes: number): Uint8Array[] {
    invariant(this.first <= from && from <= to && to <= this.next, "a read stays within the range");
    const records: Uint8Array[] = [];
    let start = this.position(from);
    const limit = start + maxBytes;
    let at = this.#chunkAt(start);
    for (let record = from; record < to; record++) {
      const end = this.position(record + 1);
      if (end > limit && record > from) {
        break;
      }
      while (start >= (this.#bases[at + 1] ?? Number.POSITIVE_INFINITY)) {
        at += 1;
      }
      const base = this.#bases[at] ?? 0;
      const chunk = this.#chunks[at];
      invariant(chunk !== undefined, "every position has a chunk");
      records.push(chunk.subarray(start - base, end - base));
      start = end;
    }
    return records;
  }

  #open(base: number, length: number, last: Uint8Array | undefined): Uint8Array {
    const wanted = last === undefined ? firstChunkBytes : last.length * 2;
    const chunk = new Uint8Array(Math.max(Math.min(wanted, chunkBytesMax), length));
    this.#chunks.push(chunk);
    this.#bases.push(base);
    this.#used = 0;
    this.#bytesHeld += chunk.length;
    return chunk;
  }

  #growTables(): void {
    this.#bytesHeld += this.#ends.byteLength + this.#times.byteLength;
    this.#ends = doubled(this.#ends);
    this.#times = doubled(this.#times);
  }

  /** The last chunk whose base is at or before `position`. */
  #chunkAt(position: number): number {
    let low = 0;
    let high = this.#bases.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((this.#bases[middle] ?? 0) <= position) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }
}

function doubled(table: Float64Array<ArrayBuffer>): Float64Array<ArrayBuffer> {
  const grown = new Float64Array(table.length * 2);
  grown.set(table);
  return grown;
}
