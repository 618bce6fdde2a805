import type { Lsn, StreamId } from "../../shared/ids/mod.ts";

/**
 * Where the records of streams lie. It knows ids, numbers and bytes; paths, producers and what is durable are the
 * streams' affair. Record numbers of a stream are dense from 0. What lies in memory is answered at once; for what does
 * not, `position` and `read` throw `Cold`, and answer after its `load`.
 */
export interface RecordStore {
  /** Bytes the store may hold, runs and arenas together. */
  readonly bytesMax: number;
  /** Bytes held now: files of runs, and what arenas set aside for records that no run has yet. */
  readonly bytesHeld: number;
  /**
   * Asks whether `bytes` more can be taken; called before anything is consumed.
   *
   * @throws ForebayError `store_full` | `arenas_full`, nothing changed
   */
  admit(bytes: number): void;
  /**
   * Copies `records` (at least one) behind the stream's last one. Never refuses: what was admitted is taken.
   *
   * @param at the stream's end before: number and position that the first of `records` gets
   * @param time of the records, ms; does not fall within a stream
   */
  append(stream: StreamId, at: RecordPlace, records: readonly Uint8Array[], time: number): void;
  /**
   * Byte position at which record `record` begins; for the number after the last one the end.
   *
   * @throws Cold
   */
  position(stream: StreamId, record: number): number;
  /**
   * Records from `from` on, before `to`, as views: as many whole ones as fit in `maxBytes` and lie in memory, at
   * least one when `from < to`. The views are valid until the event loop turns.
   *
   * @throws Cold, when the record `from` is not in memory
   * @throws ForebayError `record_damaged`, when it is lost
   */
  read(stream: StreamId, range: RecordRange): Uint8Array[];
  /** Forgets the stream and gives its bytes back. */
  drop(stream: StreamId): void;
}

export interface RecordRange {
  readonly from: number;
  /** Exclusive; at most the stream's count. */
  readonly to: number;
  readonly maxBytes: number;
}

/** Number and byte position of a record within its stream. */
export interface RecordPlace {
  readonly record: number;
  readonly byte: number;
}

/** Thrown where an answer needs bytes that are on disk only: no failure, but word of what to wait for. */
export class Cold extends Error {
  /**
   * Resolves when the same call can be answered. Made by the first call of it: who does not wait starts no read.
   *
   * @throws ForebayError `store_failed`
   */
  readonly load: () => Promise<void>;

  constructor(load: () => Promise<void>) {
    super("the records are on disk");
    this.load = load;
  }
}

/** The kind of state whose keys are stream ids: a tombstone of one says that nobody reads its records any more. */
export const streamStateKind = 2;

/** One key of the owner's state: its newest value, or null when it is no more. */
export interface StateEntry {
  /** 1 to 255. */
  readonly kind: number;
  readonly key: number;
  readonly value: Uint8Array | null;
}

/** The owner's changed state, set apart at a checkpoint's closing. */
export interface FrozenState {
  /**
   * The next entries, sorted by kind, then key: as many as do not hold up the event loop; null after the last. Values
   * are as they were at the closing, whatever changed since, and valid until the next call.
   */
  next(): readonly StateEntry[] | null;
}

/** Whose state and journal a checkpoint covers. */
export interface CheckpointOwner {
  /** Sets apart what changed since the last call. Called when every reserved entry has been applied. */
  freeze(): FrozenState;
  readonly journal: CheckpointJournal;
}

/** What a checkpoint needs of a journal. */
export interface CheckpointJournal {
  readonly id: string;
  readonly reserved: Lsn;
  readonly durable: Lsn;
  readonly trimmed: Lsn;
  trim(upTo: Lsn): void;
  stats(): { readonly bytesWritten: number };
}

/** Exact counters since the store was opened, and gauges. */
export interface StoreStats {
  readonly checkpointLsn: number;
  readonly runs: number;
  readonly runBytes: number;
  readonly arenaBytes: number;
  readonly checkpoints: number;
  readonly checkpointFailures: number;
  readonly merges: number;
  readonly mergeFailures: number;
  /** Why the newest checkpoint failed; null again after one that did not. */
  readonly failed: string | null;
  readonly bytesWritten: number;
  readonly bytesRead: number;
  readonly bytesReturned: number;
  readonly bytesHashed: number;
  readonly chunksVisited: number;
  readonly cachedBytes: number;
  readonly damagedRecords: number;
  readonly damagedTables: number;
  readonly damagedIndexes: number;
  readonly repairedPages: number;
}
