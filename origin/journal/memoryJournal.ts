import { ForebayError, invariant } from "../../shared/errors/mod.ts";
import { lsn, type Lsn } from "../../shared/ids/mod.ts";
import { limits } from "../../shared/limits.ts";
import type { Random } from "../../shared/ports/mod.ts";
import { endOfTurn } from "../ports/mod.ts";
import { SegmentBudget, type BudgetMember } from "./budget.ts";
import { entryHeaderBytes, hex, viewOf } from "./layout.ts";
import type { Entry, EntryReader, Journal, JournalEvents, JournalStats } from "./types.ts";

export interface MemoryJournalOptions {
  readonly random: Random;
  readonly segmentBytes?: number;
  /** Without meaning when `budget` is given. */
  readonly budgetBytes?: number;
  /** Shared with other rings of this process. */
  readonly budget?: SegmentBudget;
  readonly events: JournalEvents;
  /** Where the segments' memory comes from. */
  readonly allocate?: (bytes: number) => Uint8Array;
}

/** Entries back to back, each `u32 length | bytes`, and nothing else: no header and no checksum, for nobody recovers it. */
interface MemorySegment {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly firstLsn: number;
  lastLsn: number;
  end: number;
  readers: number;
}

const sparesMax = 4;

/**
 * The journal of a process that stores in memory: the same door, ring and budget, no files. What was appended is "durable" at
 * the end of the event-loop turn, and gone with the process.
 */
export class MemoryJournal implements Journal {
  readonly id: string;
  readonly storage = "memory";
  readonly storageReason = "asked for: nothing outlives the process";
  readonly #options: MemoryJournalOptions;
  readonly #segmentBytes: number;
  readonly #budget: SegmentBudget;
  readonly #member: BudgetMember;
  readonly #segments: MemorySegment[] = [];
  readonly #spares: Uint8Array[] = [];
  #waiters: (() => void)[] = [];
  #reserved = 0;
  #durable = 0;
  #trimmed = 0;
  #batches = 0;
  #turnEndDue = false;
  #closed = false;

  constructor(options: MemoryJournalOptions) {
    this.#options = options;
    this.id = hex(options.random.bytes(16));
    this.#segmentBytes = options.segmentBytes ?? limits.segmentBytes;
    this.#budget =
      options.budget ?? new SegmentBudget(options.budgetBytes ?? limits.journalBudgetBytes);
    this.#member = this.#budget.register(this.#segmentBytes);
  }

  get reserved(): Lsn {
    return lsn(this.#reserved);
  }

  get durable(): Lsn {
    return lsn(this.#durable);
  }

  get trimmed(): Lsn {
    return lsn(this.#trimmed);
  }

  append(parts: readonly Uint8Array[]): Lsn {
    if (this.#closed) {
      throw new ForebayError("shutting_down", "the journal is closed or being closed");
    }
    let length = 0;
    for (const part of parts) {
      length += part.length;
    }
    const segment = this.#roomFor(entryHeaderBytes + length);
    segment.view.setUint32(segment.end, length, true);
    let at = segment.end + entryHeaderBytes;
    for (const part of parts) {
      segment.bytes.set(part, at);
      at += part.length;
    }
    segment.end = at;
    segment.lastLsn += 1;
    this.#reserved += 1;
    if (!this.#turnEndDue) {
      this.#turnEndDue = true;
      endOfTurn(() => {
        this.#turnEndDue = false;
        this.#commit();
      });
    }
    return lsn(this.#reserved);
  }

  flush(): Promise<void> {
    if (this.#durable === this.#reserved) {
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      this.#waiters.push(resolve);
    });
  }

  trim(upTo: Lsn): void {
    invariant(upTo <= this.#durable, "only what is durable is trimmed");
    if (upTo > this.#trimmed) {
      this.#trimmed = upTo;
      this.#free();
    }
  }

  read(from: Lsn): EntryReader {
    if (from <= this.#trimmed) {
      throw new ForebayError("offset_gone", `entries up to LSN ${this.#trimmed} are trimmed`);
    }
    let next: number = from;
    let held: MemorySegment | undefined;
    const hold = (segment: MemorySegment | undefined): void => {
      if (segment !== held) {
        const before = held;
        held = segment;
        // The next one is held before this one is let go, so that it is not recycled between.
        if (segment !== undefined) {
          segment.readers += 1;
        }
        this.#letGo(before);
      }
    };
    return {
      next: () => {
        const found = this.#segments.find(({ lastLsn }) => lastLsn >= next);
        if (found === undefined || next > this.#durable) {
          return Promise.resolve(undefined);
        }
        hold(found);
        const entries = entriesOf(found, next, this.#durable);
        next += entries.length;
        return Promise.resolve(entries);
      },
      close: () => {
        hold(undefined);
        return Promise.resolve();
      },
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.flush();
    this.#segments.length = 0;
    this.#spares.length = 0;
    this.#member.deregister();
  }

  stats(): JournalStats {
    const segments = this.#segments.length + this.#spares.length;
    return {
      entries: this.#reserved,
      batches: this.#batches,
      syncs: 0,
      bytesWritten: 0,
      segments,
      spares: this.#spares.length,
      bytesHeld: segments * this.#segmentBytes,
      budgetBytes: this.#budget.capBytes,
      full: null,
      failed: null,
    };
  }

  #commit(): void {
    if (this.#durable === this.#reserved) {
      return;
    }
    this.#durable = this.#reserved;
    this.#batches += 1;
    for (const resolve of this.#waiters.splice(0)) {
      resolve();
    }
    this.#options.events.onDurable(lsn(this.#durable));
  }

  /** The segment the next entry goes to; a new one when it does not fit. */
  #roomFor(bytes: number): MemorySegment {
    const active = this.#segments.at(-1);
    if (active !== undefined && active.end + bytes <= this.#segmentBytes) {
      return active;
    }
    const most = Math.min(limits.entryBytesMax, this.#segmentBytes - entryHeaderBytes);
    if (bytes - entryHeaderBytes > most) {
      throw new ForebayError(
        "record_too_large",
        `a journal entry of ${bytes - entryHeaderBytes} bytes is larger than the limit of ${most}`,
      );
    }
    const memory = this.#spares.pop() ?? this.#allocate();
    const view = viewOf(memory);
    const lastLsn = this.#reserved;
    const segment = { bytes: memory, view, firstLsn: lastLsn + 1, lastLsn, end: 0, readers: 0 };
    this.#segments.push(segment);
    // The one before may be free already, and was the active one until now.
    this.#free();
    return segment;
  }

  #allocate(): Uint8Array {
    if (!this.#member.charge()) {
      throw new ForebayError(
        "disk_full",
        `the journal holds ${this.#budget.heldBytes} of its budget of ${this.#budget.capBytes} bytes, which leaves no room for a segment of ${this.#segmentBytes}`,
      );
    }
    const { allocate = (bytes) => new Uint8Array(bytes) } = this.#options;
    return allocate(this.#segmentBytes);
  }

  /** Takes back whole segments below the mark, oldest first, up to the first that somebody reads; never the active one. */
  #free(): void {
    for (;;) {
      const oldest = this.#segments[0];
      const free =
        oldest !== undefined &&
        this.#segments.length > 1 &&
        oldest.lastLsn <= this.#trimmed &&
        oldest.readers === 0;
      if (!free) {
        return;
      }
      this.#segments.shift();
      if (this.#spares.length < sparesMax && !this.#budget.overdrawn) {
        this.#spares.push(oldest.bytes);
      } else {
        this.#member.release(1);
      }
    }
  }

  #letGo(segment: MemorySegment | undefined): void {
    if (segment !== undefined) {
      segment.readers -= 1;
      this.#free();
    }
  }
}

function entriesOf(segment: MemorySegment, from: number, upTo: number): Entry[] {
  const entries: Entry[] = [];
  let at = 0;
  for (let n = segment.firstLsn; n <= Math.min(segment.lastLsn, upTo); n++) {
    const start = at + entryHeaderBytes;
    at = start + segment.view.getUint32(at, true);
    if (n >= from) {
      entries.push({ lsn: lsn(n), bytes: segment.bytes.subarray(start, at) });
    }
  }
  return entries;
}
