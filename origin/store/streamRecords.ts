import { invariant } from "../../shared/errors/mod.ts";

const firstChunkBytes = 256;
const chunkBytesMax = 1024 * 1024;
const firstEnds = 8;

/**
 * The records of one stream: chunks that hold many records each, and one table of where records end. FORMAT.md
 * draws it. A record is never split, so that it can be given out as one view.
 *
 * Invariants: `bases[i]` is the position of chunk i's first byte and rises; only the last chunk grows;
 * `ends` rises, and `ends[n-1] - (n > 1 ? ends[n-2] : 0)` is the length of record n-1.
 */
export class StreamRecords {
  #chunks: Uint8Array[] = [];
  #bases: number[] = [];
  #used = 0;
  #ends = new Float64Array(firstEnds);
  #count = 0;
  #bytesHeld: number = firstEnds * 8;

  get count(): number {
    return this.#count;
  }

  get bytesHeld(): number {
    return this.#bytesHeld;
  }

  /** The position at which record `record` begins. */
  position(record: number): number {
    return record === 0 ? 0 : (this.#ends[record - 1] ?? 0);
  }

  append(record: Uint8Array): void {
    const length = record.length;
    const end = this.position(this.#count);
    let chunk = this.#chunks[this.#chunks.length - 1];
    if (chunk === undefined || this.#used + length > chunk.length) {
      chunk = this.#open(end, length, chunk);
    }
    chunk.set(record, this.#used);
    this.#used += length;
    if (this.#count === this.#ends.length) {
      this.#growEnds();
    }
    this.#ends[this.#count] = end + length;
    this.#count += 1;
  }

  /** Pushes the views of records `from` … as far as `to` and `maxBytes` allow, at least one. */
  read(from: number, to: number, maxBytes: number): Uint8Array[] {
    invariant(from <= to && to <= this.#count, "a read stays within the stream");
    const records: Uint8Array[] = [];
    let start = this.position(from);
    const limit = start + maxBytes;
    let at = this.#chunkAt(start);
    for (let record = from; record < to; record++) {
      const end = this.#ends[record] ?? start;
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
    const doubled = last === undefined ? firstChunkBytes : last.length * 2;
    const chunk = new Uint8Array(Math.max(Math.min(doubled, chunkBytesMax), length));
    this.#chunks.push(chunk);
    this.#bases.push(base);
    this.#used = 0;
    this.#bytesHeld += chunk.length;
    return chunk;
  }

  #growEnds(): void {
    const grown = new Float64Array(this.#ends.length * 2);
    grown.set(this.#ends);
    this.#bytesHeld += this.#ends.byteLength;
    this.#ends = grown;
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
