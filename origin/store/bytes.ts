import { ForebayError } from "../../shared/errors/mod.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** Builds a byte sequence of fixed little-endian fields; grows by doubling. */
export class ByteWriter {
  #bytes: Uint8Array;
  #view: DataView;
  #length = 0;

  constructor(initialBytes = 4096) {
    this.#bytes = new Uint8Array(initialBytes);
    this.#view = new DataView(this.#bytes.buffer);
  }

  get length(): number {
    return this.#length;
  }

  /** What was written; a view, valid until the next write. */
  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  u8(value: number): void {
    this.#room(1);
    this.#bytes[this.#length] = value;
    this.#length += 1;
  }

  u32(value: number): void {
    this.#room(4);
    this.#view.setUint32(this.#length, value, true);
    this.#length += 4;
  }

  f64(value: number): void {
    this.#room(8);
    this.#view.setFloat64(this.#length, value, true);
    this.#length += 8;
  }

  text(value: string): void {
    const bytes = encoder.encode(value);
    this.u32(bytes.length);
    this.bytes(bytes);
  }

  bytes(value: Uint8Array): void {
    this.#room(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
  }

  #room(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(this.#bytes.length * 2, needed));
      grown.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = grown;
      this.#view = new DataView(grown.buffer);
    }
  }
}

/** Reads what a ByteWriter wrote. Every length is checked before it is used. */
export class ByteReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #what: string;
  #position = 0;

  /** @param what what the bytes are, for errors */
  constructor(bytes: Uint8Array, what: string) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#what = what;
  }

  get done(): boolean {
    return this.#position === this.#bytes.length;
  }

  u8(): number {
    return this.#view.getUint8(this.#take(1));
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  f64(): number {
    return this.#view.getFloat64(this.#take(8), true);
  }

  /** A whole number ≥ 0. */
  count(): number {
    const value = this.f64();
    if (!Number.isSafeInteger(value) || value < 0) {
      throw storeCorrupt(`${this.#what} holds ${value} where a count is expected`);
    }
    return value;
  }

  text(): string {
    const bytes = this.bytes(this.u32());
    try {
      return decoder.decode(bytes);
    } catch (cause) {
      throw storeCorrupt(`${this.#what} holds text that is not UTF-8`, cause);
    }
  }

  /** A view. */
  bytes(length: number): Uint8Array {
    const from = this.#take(length);
    return this.#bytes.subarray(from, from + length);
  }

  #take(bytes: number): number {
    const from = this.#position;
    if (from + bytes > this.#bytes.length) {
      const left = this.#bytes.length - from;
      throw storeCorrupt(`${this.#what} names ${bytes} bytes where ${left} are left`);
    }
    this.#position = from + bytes;
    return from;
  }
}

/** Damage that the start cannot go on with. */
export function storeCorrupt(what: string, cause?: unknown): ForebayError {
  return new ForebayError("store_corrupt", what, { cause });
}
