import { ForebayError } from "../../shared/errors/mod.ts";
import type { Lsn } from "../../shared/ids/mod.ts";
import type { ChainEnd } from "./batchHeader.ts";
import { batchFlag, batchHeaderBytes, segmentName } from "./layout.ts";
import { nextBatch, replayEntries } from "./scan.ts";
import type { SegmentHeader } from "./segmentHeader.ts";
import { SegmentReader } from "./segmentReader.ts";
import type { Entry, EntryReader } from "./types.ts";
import { blockBytes, type Disk } from "../storage/mod.ts";

/** What a reader asks of the ring it reads. */
export interface ReadableRing {
  /** The segment that holds, or will hold, the entry `lsn`; undefined when it is gone. */
  locate(lsn: number): SegmentHeader | undefined;
  /** The segment after `generation`; undefined while it is not in use. */
  successor(generation: number): SegmentHeader | undefined;
  pin(generation: number): void;
  unpin(generation: number): void;
}

export interface ReaderParts {
  readonly ring: ReadableRing;
  readonly durable: () => number;
  readonly disk: Disk;
  readonly dir: string;
}

/** Reads the segment files by position, through one buffer. */
export class RingReader implements EntryReader {
  readonly #parts: ReaderParts;
  /** LSN of the next entry to give. */
  #next: number;
  #segment: SegmentHeader;
  #file: SegmentReader | undefined;
  /** Undefined: the next batch begins the segment, or the reader. */
  #chain: ChainEnd | undefined;
  #position = blockBytes;
  #closed = false;

  /** @throws ForebayError `offset_gone` when the entry `from` is trimmed */
  constructor(parts: ReaderParts, from: Lsn) {
    const segment = parts.ring.locate(from);
    if (segment === undefined) {
      throw gone(from);
    }
    this.#parts = parts;
    this.#next = from;
    this.#segment = segment;
    parts.ring.pin(segment.generation);
  }

  async next(): Promise<readonly Entry[] | undefined> {
    while (!this.#closed && this.#next <= this.#parts.durable()) {
      const entries = await this.#nextBatch();
      if (entries === undefined || entries.length > 0) {
        return entries;
      }
    }
    return undefined;
  }

  async close(): Promise<void> {
    if (!this.#closed) {
      this.#closed = true;
      this.#parts.ring.unpin(this.#segment.generation);
      await this.#file?.close();
    }
  }

  /** The wanted entries of one batch, perhaps none; undefined: there is no batch to read yet. */
  async #nextBatch(): Promise<Entry[] | undefined> {
    const { disk, dir } = this.#parts;
    const path = `${dir}/${segmentName(this.#segment.generation)}`;
    this.#file ??= await SegmentReader.open(disk, path);
    const at = { chain: this.#chain, position: this.#position };
    let batch = await nextBatch(this.#file, this.#segment, at);
    if (batch.header === undefined) {
      // What was read ahead may be older than the batch.
      this.#file.forget();
      batch = await nextBatch(this.#file, this.#segment, at);
    }
    if (batch.header === undefined) {
      return undefined;
    }
    const { header, end, bytes } = batch;
    if (header.firstLsn > this.#next) {
      throw gone(this.#next);
    }
    const payload = await this.#file.view(this.#position + batchHeaderBytes, header.length);
    const entries: Entry[] = [];
    replayEntries(payload, header, `${path}: batch at offset ${this.#position}`, (n, found) => {
      if (n >= this.#next) {
        entries.push({ lsn: n, bytes: found });
      }
    });
    if ((header.flags & batchFlag.seal) !== 0) {
      return (await this.#moveOn(end)) ? [] : undefined;
    }
    this.#chain = end;
    this.#position += bytes;
    this.#next = Math.max(this.#next, end.lsn + 1);
    return entries;
  }

  async #moveOn(chain: ChainEnd): Promise<boolean> {
    const { ring } = this.#parts;
    const successor = ring.successor(this.#segment.generation);
    if (successor === undefined) {
      return false;
    }
    // The next one is held before this one is let go, so that none between is missed.
    ring.pin(successor.generation);
    ring.unpin(this.#segment.generation);
    const file = this.#file;
    this.#file = undefined;
    this.#segment = successor;
    this.#chain = chain;
    this.#position = blockBytes;
    await file?.close();
    return true;
  }
}

function gone(lsn: number): ForebayError {
  return new ForebayError("offset_gone", `the entry with LSN ${lsn} is trimmed`);
}
