import { ForebayError, invariant } from "../../shared/errors/mod.ts";

const initialBytes = 4096;
const headViews = 256;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });
/** The last ms of a u48: the year 10889. */
const timeMax = 2 ** 48 - 1;

/** A time as an entry can hold it: whole ms from 1970 on; what is no number counts as 1970. */
export function clampTime(ms: number): number {
  return ms > 0 ? Math.min(Math.floor(ms), timeMax) : 0;
}

/**
 * Writes an entry as parts for `Journal.append`: small fields go into a scratch buffer, records are passed on as
 * the views they are, so that the journal's copy is the only one. Reused for every entry; `parts()` is valid
 * until the next `begin()`.
 */
export class EntryWriter {
  #scratch: Uint8Array = new Uint8Array(initialBytes);
  /** `#scratch.subarray(0, n)` by n: most entries are one short head and a body. */
  #heads: (Uint8Array | undefined)[] = [];
  #position = 0;
  /** Where the piece of scratch not yet in `#parts` begins. */
  #begun = 0;
  #written = 0;
  readonly #parts: Uint8Array[] = [];

  begin(): void {
    this.#position = 0;
    this.#begun = 0;
    this.#written = 0;
    this.#parts.length = 0;
  }

  /** Bytes of the entry so far. */
  get length(): number {
    return this.#written + this.#position - this.#begun;
  }

  parts(): readonly Uint8Array[] {
    this.#flush();
    return this.#parts;
  }

  u8(value: number): void {
    this.#room(1);
    this.#scratch[this.#position++] = value;
  }

  uint(value: number): void {
    invariant(
      Number.isSafeInteger(value) && value >= 0,
      "an entry holds whole numbers to 2^53 - 1",
    );
    this.#room(8);
    let rest = value;
    while (rest > 0x7fffffff) {
      this.#scratch[this.#position++] = (rest % 128) | 0x80;
      rest = Math.floor(rest / 128);
    }
    while (rest > 0x7f) {
      this.#scratch[this.#position++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#scratch[this.#position++] = rest;
  }

  time(ms: number): void {
    this.#room(6);
    const high = Math.floor(ms / 0x100000000);
    const low = ms >>> 0;
    const to = this.#scratch;
    const at = this.#position;
    to[at] = low;
    to[at + 1] = low >>> 8;
    to[at + 2] = low >>> 16;
    to[at + 3] = low >>> 24;
    to[at + 4] = high;
    to[at + 5] = high >>> 8;
    this.#position = at + 6;
  }

  text(value: string): void {
    const bytes = encoder.encode(value);
    this.uint(bytes.length);
    this.#room(bytes.length);
    this.#scratch.set(bytes, this.#position);
    this.#position += bytes.length;
  }

  /** Passes `bytes` on without copying them. */
  bytes(value: Uint8Array): void {
    this.#flush();
    this.#parts.push(value);
    this.#written += value.length;
  }

  #flush(): void {
    const begun = this.#begun;
    const end = this.#position;
    if (end === begun) {
      return;
    }
    this.#parts.push(
      begun === 0 && end < headViews ? this.#head(end) : this.#scratch.subarray(begun, end),
    );
    this.#written += end - begun;
    this.#begun = end;
  }

  #head(length: number): Uint8Array {
    let head = this.#heads[length];
    if (head === undefined) {
      head = this.#scratch.subarray(0, length);
      this.#heads[length] = head;
    }
    return head;
  }

  /** Makes room for `bytes`. Pieces already passed on keep the old buffer. */
  #room(bytes: number): void {
    if (this.#position + bytes <= this.#scratch.length) {
      return;
    }
    const open = this.#scratch.subarray(this.#begun, this.#position);
    const grown = new Uint8Array(Math.max(this.#scratch.length, open.length + bytes) * 2);
    grown.set(open);
    this.#scratch = grown;
    this.#heads = [];
    this.#position = open.length;
    this.#begun = 0;
  }
}

/** Reads an entry. Every length is checked before it is used (J31). */
export class EntryReader {
  readonly #bytes: Uint8Array;
  #position = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get done(): boolean {
    return this.#position === this.#bytes.length;
  }

  u8(): number {
    const value = this.#bytes[this.#position];
    if (value === undefined) {
      throw corrupt("ends within a field");
    }
    this.#position += 1;
    return value;
  }

  uint(): number {
    let value = 0;
    let unit = 1;
    for (;;) {
      const byte = this.u8();
      value += (byte & 0x7f) * unit;
      if (value > Number.MAX_SAFE_INTEGER) {
        throw corrupt("holds an integer above 2^53 - 1");
      }
      if (byte < 0x80) {
        return value;
      }
      unit *= 128;
    }
  }

  time(): number {
    let value = 0;
    for (let unit = 1; unit < 0x1000000000000; unit *= 256) {
      value += this.u8() * unit;
    }
    return value;
  }

  text(): string {
    const bytes = this.bytes(this.uint());
    try {
      return decoder.decode(bytes);
    } catch (cause) {
      throw corrupt("holds text that is not UTF-8", cause);
    }
  }

  /** A view, not a copy. */
  bytes(length: number): Uint8Array {
    const end = this.#position + length;
    if (end > this.#bytes.length) {
      throw corrupt(`names ${length} bytes where ${this.#bytes.length - this.#position} are left`);
    }
    const view = this.#bytes.subarray(this.#position, end);
    this.#position = end;
    return view;
  }

  /** A count of things that take at least one byte each. */
  count(): number {
    const count = this.uint();
    if (count > this.#bytes.length - this.#position) {
      throw corrupt(
        `names ${count} records where ${this.#bytes.length - this.#position} bytes are left`,
      );
    }
    return count;
  }
}

export function corrupt(what: string, cause?: unknown): ForebayError {
  return new ForebayError("journal_corrupt", `a journal entry ${what}`, { cause });
}
