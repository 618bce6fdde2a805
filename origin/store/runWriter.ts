import { invariant } from "../../shared/errors/mod.ts";
import { crc32c } from "../native/mod.ts";
import { blockBytes } from "../storage/mod.ts";
import { encodeHeader, headerBytes, type RunHeader, type SectionPlace } from "./runHeader.ts";
import { type ChunkPlace, RunIndexBuilder, tableEntryBytes } from "./runIndex.ts";
import { encodePages } from "./section.ts";
import type { SequentialFile } from "./sequentialFile.ts";

export const runBlockBytes: number = 64 * 1024;

/** What a run is, besides its content. */
export type RunIdentity = Pick<RunHeader, "lane" | "run" | "storeId" | "firstLsn" | "lastLsn">;

/** Which record it is, and its position in the stream. */
export interface RecordKey {
  readonly stream: number;
  readonly record: number;
  readonly byte: number;
}

/**
 * Puts sorted records into blocks, then the sections behind them. One chunk is open at a time:
 *
 *     block  [ sealed chunks … | payloads of the open one | free ]      table of the open one beside it
 *
 * Invariant: used + open + table ≤ the block's size, so that the open chunk can always be sealed.
 */
export class RunWriter {
  readonly #out: SequentialFile;
  readonly #identity: RunIdentity;
  readonly #index = new RunIndexBuilder();
  #block: Uint8Array<ArrayBuffer> = new Uint8Array(runBlockBytes);
  /** Bytes of sealed chunks. */
  #used = 0;
  /** Payload bytes of the open chunk. */
  #open = 0;
  readonly #table: DataView = new DataView(new ArrayBuffer(runBlockBytes));
  #entries = 0;
  #stream = -1;
  #record = 0;
  #byte = 0;
  #records = 0;
  #payloadBytes = 0;

  constructor(out: SequentialFile, identity: RunIdentity) {
    this.#out = out;
    this.#identity = identity;
    out.write(new Uint8Array(headerBytes));
  }

  /**
   * The next record in order of stream, then number.
   *
   * @param crc as another run has it, so that damage stays damage; its own when left out
   */
  add({ stream, record, byte }: RecordKey, bytes: Uint8Array, time: number, crc?: number): void {
    if (stream !== this.#stream || record !== this.#record + this.#entries) {
      this.#seal();
      this.#stream = stream;
      this.#record = record;
      this.#byte = byte;
    }
    const length = bytes.length;
    if (!this.#fits(length)) {
      this.#seal();
      this.#record = record;
      this.#byte = byte;
      if (!this.#fits(length)) {
        this.#flushBlock();
        this.#growFor(length + tableEntryBytes);
      }
    }
    const at = this.#used + this.#open;
    this.#block.set(bytes, at);
    const entry = this.#entries * tableEntryBytes;
    this.#table.setUint32(entry, length, true);
    this.#table.setUint32(entry + 4, crc ?? crc32c(this.#block, at, length, 0), true);
    this.#table.setFloat64(entry + 8, time, true);
    this.#open += length;
    this.#entries += 1;
    this.#records += 1;
    this.#payloadBytes += length;
  }

  /** The next chunk as it lies in another run, payload and table: neither is looked at. */
  copy(place: ChunkPlace, bytes: Uint8Array): void {
    this.#seal();
    if (this.#used + bytes.length > this.#block.length) {
      this.#flushBlock();
      this.#growFor(bytes.length);
    }
    this.#block.set(bytes, this.#used);
    this.#index.add({ ...place, place: this.#out.length + this.#used });
    this.#used += bytes.length;
    this.#records += place.records;
    this.#payloadBytes += place.payloadBytes;
    this.#stream = -1;
  }

  /** The sections, and the header behind them. What is left to do is the file's `finish` with the header in front. */
  finish(state: Uint8Array): { readonly header: RunHeader; readonly index: Uint8Array } {
    this.#seal();
    this.#flushBlock();
    const index = this.#index.encode();
    const places = { index: this.#section(index), state: this.#section(state) };
    const header = {
      ...this.#identity,
      ...places,
      records: this.#records,
      payloadBytes: this.#payloadBytes,
    };
    this.#out.write(encodeHeader(header));
    return { header, index };
  }

  #section(bytes: Uint8Array): SectionPlace {
    const position = this.#out.length;
    const pages = encodePages(bytes);
    this.#out.write(pages);
    this.#out.write(pages);
    return { position, bytes: bytes.length };
  }

  #fits(length: number): boolean {
    const table = (this.#entries + 1) * tableEntryBytes;
    return this.#used + this.#open + length + table <= this.#block.length;
  }

  /** What is too large for a block gets one of its own. */
  #growFor(needed: number): void {
    if (needed > this.#block.length) {
      this.#block = new Uint8Array(Math.ceil(needed / blockBytes) * blockBytes);
    }
  }

  #seal(): void {
    if (this.#entries === 0) {
      return;
    }
    const tableBytes = this.#entries * tableEntryBytes;
    const table = new Uint8Array(this.#table.buffer, 0, tableBytes);
    this.#index.add({
      stream: this.#stream,
      record: this.#record,
      byte: this.#byte,
      place: this.#out.length + this.#used,
      payloadBytes: this.#open,
      records: this.#entries,
      tableCrc: crc32c(table, 0, tableBytes, 0),
    });
    this.#block.set(table, this.#used + this.#open);
    this.#used += this.#open + tableBytes;
    this.#open = 0;
    this.#entries = 0;
  }

  #flushBlock(): void {
    invariant(this.#entries === 0, "a block is written when its chunks are sealed");
    if (this.#used === 0) {
      return;
    }
    const end = Math.ceil(this.#used / blockBytes) * blockBytes;
    this.#block.fill(0, this.#used, end);
    this.#out.write(this.#block.subarray(0, end));
    this.#used = 0;
    if (this.#block.length > runBlockBytes) {
      this.#block = new Uint8Array(runBlockBytes);
    }
  }
}
