import { crc32c } from "../native/mod.ts";
import type { Counters } from "./counters.ts";
import { type ChunkPlace, tableEntryBytes } from "./runIndex.ts";

const objectBytes = 256;
const read = { not: 0, sound: 1, damaged: 2 } as const;

/**
 * What is in memory of one chunk: its table, and the payloads read so far, in their places. Record numbers are the
 * stream's.
 *
 * Invariant: a payload is `sound` or `damaged` after it was read and checked against the table, once.
 */
export class Chunk {
  readonly place: ChunkPlace;
  /** The table does not match its CRC: nothing of the chunk can be read. */
  readonly lost: boolean;
  /** Positions after each record, from the chunk's first byte. */
  readonly #ends: Float64Array;
  readonly #crcs: Uint32Array;
  readonly #read: Uint8Array;
  #payload: Uint8Array | null = null;

  /** @param table as it lies in the file; not kept */
  constructor(place: ChunkPlace, table: Uint8Array, counters: Counters) {
    this.place = place;
    this.#ends = new Float64Array(place.records);
    this.#crcs = new Uint32Array(place.records);
    this.#read = new Uint8Array(place.records);
    counters.bytesHashed += table.length;
    const view = new DataView(table.buffer, table.byteOffset, table.byteLength);
    let end = 0;
    for (let i = 0; i < place.records; i++) {
      end += view.getUint32(i * tableEntryBytes, true);
      this.#ends[i] = end;
      this.#crcs[i] = view.getUint32(i * tableEntryBytes + 4, true);
    }
    const sound = crc32c(table, 0, table.length, 0) === place.tableCrc;
    this.lost = !sound || end !== place.payloadBytes;
    if (this.lost) {
      counters.damagedTables += 1;
      counters.damagedRecords += place.records;
    }
  }

  get bytesHeld(): number {
    return objectBytes + this.place.records * 13 + (this.#payload?.length ?? 0);
  }

  /** Number of the record after its last one. */
  get next(): number {
    return this.place.record + this.place.records;
  }

  /** Position in the stream at which record `record` begins; for `next` the end. */
  position(record: number): number {
    return this.place.byte + this.#offset(record);
  }

  isDamaged(record: number): boolean {
    return this.lost || this.#read[record - this.place.record] === read.damaged;
  }

  /** The record's payload, if it was read and is sound. */
  get(record: number): Uint8Array | undefined {
    return this.#read[record - this.place.record] === read.sound
      ? this.#payload?.subarray(this.#offset(record), this.#offset(record + 1))
      : undefined;
  }

  /** Of the records `from` … `to` - 1 the first ones in a row that were not read yet; null when there are none. */
  gap(from: number, to: number): { from: number; to: number } | null {
    const base = this.place.record;
    let first = from;
    while (first < to && this.#read[first - base] !== read.not) {
      first += 1;
    }
    let last = first;
    while (last < to && this.#read[last - base] === read.not) {
      last += 1;
    }
    return first === to ? null : { from: first, to: last };
  }

  /** Where the payloads of `from` … `to` - 1 lie in the file, and the memory they belong into. */
  extent(from: number, to: number): { readonly position: number; readonly into: Uint8Array } {
    const start = this.#offset(from);
    this.#payload ??= new Uint8Array(this.place.payloadBytes);
    const into = this.#payload.subarray(start, this.#offset(to));
    return { position: this.place.place + start, into };
  }

  /** The payloads of `from` … `to` - 1 lie in their memory now: checks them. */
  check(from: number, to: number, counters: Counters): void {
    const payload = this.#payload;
    if (payload === null) {
      return;
    }
    const base = this.place.record;
    for (let record = from; record < to; record++) {
      const start = this.#offset(record);
      const length = this.#offset(record + 1) - start;
      const sound = crc32c(payload, start, length, 0) === this.#crcs[record - base];
      this.#read[record - base] = sound ? read.sound : read.damaged;
      counters.bytesHashed += length;
      counters.damagedRecords += sound ? 0 : 1;
    }
  }

  #offset(record: number): number {
    const before = record - this.place.record;
    return before === 0 ? 0 : (this.#ends[before - 1] ?? 0);
  }
}
