import { storeCorrupt } from "./bytes.ts";

/** Where one chunk lies and which records are in it. */
export interface ChunkPlace {
  readonly stream: number;
  /** Number of its first record, and that record's position in the stream. */
  readonly record: number;
  readonly byte: number;
  /** Position in the file of its payload; its table follows the payload. */
  readonly place: number;
  readonly payloadBytes: number;
  readonly records: number;
  readonly tableCrc: number;
}

/** Length, CRC-32C and time of one record. */
export const tableEntryBytes = 16;

const wide = ["stream", "record", "byte", "place"] as const;
const narrow = ["payloadBytes", "records", "tableCrc"] as const;
const headBytes = 8;
const chunkBytes = wide.length * 8 + narrow.length * 4;

/** Collects the chunks of a run in the making, sorted by stream, then record. */
export class RunIndexBuilder {
  readonly #chunks: ChunkPlace[] = [];

  add(chunk: ChunkPlace): void {
    this.#chunks.push(chunk);
  }

  encode(): Uint8Array {
    const count = this.#chunks.length;
    const bytes = new Uint8Array(headBytes + count * chunkBytes);
    new DataView(bytes.buffer).setUint32(0, count, true);
    let at = headBytes;
    for (const name of wide) {
      const column = new Float64Array(bytes.buffer, at, count);
      this.#chunks.forEach((chunk, i) => (column[i] = chunk[name]));
      at += column.byteLength;
    }
    for (const name of narrow) {
      const column = new Uint32Array(bytes.buffer, at, count);
      this.#chunks.forEach((chunk, i) => (column[i] = chunk[name]));
      at += column.byteLength;
    }
    return bytes;
  }
}

/** The chunks of a run, in typed arrays: FORMAT.md, Index. */
export class RunIndex {
  readonly size: number;
  readonly #streams: Float64Array;
  readonly #records: Float64Array;
  readonly #bytes: Float64Array;
  readonly #places: Float64Array;
  readonly #payloadBytes: Uint32Array;
  readonly #counts: Uint32Array;
  readonly #tableCrcs: Uint32Array;

  /** @throws ForebayError `store_corrupt` */
  constructor(encoded: Uint8Array) {
    // Columns are used in place, which needs them aligned.
    const bytes = encoded.byteOffset % 8 === 0 ? encoded : encoded.slice();
    const { buffer, byteOffset, byteLength } = bytes;
    const size = byteLength < headBytes ? 0 : new DataView(buffer, byteOffset).getUint32(0, true);
    if (byteLength !== headBytes + size * chunkBytes) {
      throw storeCorrupt(`a run's index of ${size} chunks has ${byteLength} bytes`);
    }
    this.size = size;
    const start = byteOffset + headBytes;
    this.#streams = new Float64Array(buffer, start, size);
    this.#records = new Float64Array(buffer, start + size * 8, size);
    this.#bytes = new Float64Array(buffer, start + size * 16, size);
    this.#places = new Float64Array(buffer, start + size * 24, size);
    this.#payloadBytes = new Uint32Array(buffer, start + size * 32, size);
    this.#counts = new Uint32Array(buffer, start + size * 36, size);
    this.#tableCrcs = new Uint32Array(buffer, start + size * 40, size);
  }

  /** The chunk that holds the record, or ends right before it (`record` is then the end of the range); -1 for none. */
  find(stream: number, record: number): number {
    let low = 0;
    let high = this.size;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const at = this.#streams[middle] ?? 0;
      if (at < stream || (at === stream && (this.#records[middle] ?? 0) <= record)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const chunk = low - 1;
    const held = this.#streams[chunk] === stream;
    return held && record <= (this.#records[chunk] ?? 0) + (this.#counts[chunk] ?? 0) ? chunk : -1;
  }

  chunk(index: number): ChunkPlace {
    return {
      stream: this.#streams[index] ?? 0,
      record: this.#records[index] ?? 0,
      byte: this.#bytes[index] ?? 0,
      place: this.#places[index] ?? 0,
      payloadBytes: this.#payloadBytes[index] ?? 0,
      records: this.#counts[index] ?? 0,
      tableCrc: this.#tableCrcs[index] ?? 0,
    };
  }
}
