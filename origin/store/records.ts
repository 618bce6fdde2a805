import { ForebayError } from "../../shared/errors/mod.ts";
import type { StreamId } from "../../shared/ids/mod.ts";
import type { Arenas } from "./arenas.ts";
import type { RunSet } from "./runSet.ts";
import type { StreamRecords } from "./streamRecords.ts";
import type { RecordPlace, RecordRange, RecordStore } from "./types.ts";

export interface RecordLimits {
  /** Of the active arena. */
  readonly arenaBytesMax: number;
  readonly bytesMax: number;
}

/** The records of all streams, young ones in the arenas, older ones in runs. */
export class Records implements RecordStore {
  readonly bytesMax: number;
  /** Closes the full arena, if that can be done now. Without one the store only has its active arena. */
  onArenaFull: (() => void) | null = null;
  readonly #arenaBytesMax: number;
  readonly #arenas: Arenas;
  readonly #runs: RunSet;

  constructor(arenas: Arenas, runs: RunSet, { arenaBytesMax, bytesMax }: RecordLimits) {
    this.bytesMax = bytesMax;
    this.#arenaBytesMax = arenaBytesMax;
    this.#arenas = arenas;
    this.#runs = runs;
  }

  get bytesHeld(): number {
    return this.#arenas.bytesUnsaved + this.#runs.fileBytes;
  }

  /** Rounding up to whole chunks can pass a limit by less than one chunk; the next call then refuses. */
  admit(bytes: number): void {
    const held = this.bytesHeld;
    if (held + bytes > this.bytesMax) {
      const message = `${bytes} bytes do not fit: the store holds ${held} of at most ${this.bytesMax} bytes`;
      throw new ForebayError("store_full", message);
    }
    if (this.#hasRoom(bytes)) {
      return;
    }
    this.onArenaFull?.();
    if (!this.#hasRoom(bytes)) {
      const { active } = this.#arenas;
      const message =
        `${bytes} bytes do not fit: the arena holds ${active.bytesHeld} of at most ${this.#arenaBytesMax} bytes, ` +
        "and the one before is still being written to disk";
      throw new ForebayError("arenas_full", message);
    }
  }

  append(stream: StreamId, at: RecordPlace, records: readonly Uint8Array[], time: number): void {
    this.#arenas.active.append(stream, at, records, time);
  }

  position(stream: StreamId, record: number): number {
    return this.#holder(stream, record)?.position(record) ?? this.#runs.position(stream, record);
  }

  read(stream: StreamId, { from, to, maxBytes }: RecordRange): Uint8Array[] {
    const records: Uint8Array[] = [];
    let left = maxBytes;
    let next = from;
    while (next < to) {
      const held = this.#holder(stream, next);
      if (
        held !== undefined &&
        next > from &&
        held.position(next + 1) - held.position(next) > left
      ) {
        break;
      }
      const wanted = Math.min(to, held?.next ?? this.#firstHeld(stream));
      const range = { from: next, to: wanted, maxBytes: left };
      // A read from runs goes on into the arenas; never the other way round, so `Cold` comes first or not at all.
      const read = held?.read(next, wanted, left) ?? this.#runs.read(stream, range);
      for (const record of read) {
        records.push(record);
        left -= record.length;
      }
      next += read.length;
      if (next < wanted) {
        break;
      }
    }
    return records;
  }

  drop(stream: StreamId): void {
    this.#arenas.drop(stream);
  }

  #hasRoom(bytes: number): boolean {
    const held = this.#arenas.active.bytesHeld;
    return held === 0 || held + bytes <= this.#arenaBytesMax;
  }

  /** What holds the record in memory, or ends right before it. */
  #holder(stream: StreamId, record: number): StreamRecords | undefined {
    const active = this.#arenas.active.get(stream);
    if (active !== undefined && record >= active.first) {
      return active;
    }
    const previous = this.#arenas.previous.get(stream);
    return previous !== undefined && record >= previous.first ? previous : undefined;
  }

  /** Number of the first record in an arena. */
  #firstHeld(stream: StreamId): number {
    const { active, previous } = this.#arenas;
    return previous.get(stream)?.first ?? active.get(stream)?.first ?? Number.POSITIVE_INFINITY;
  }
}
