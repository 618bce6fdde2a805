import type { Lsn } from "../../shared/ids/mod.ts";

/** What the journal tells its one owner; called from the I/O completion, once per advance. */
export interface JournalEvents {
  /** Every entry ≤ `durable` is on the device. */
  onDurable(durable: Lsn): void;
  /** The shard failed closed: entries above the last durable one have an unknown outcome. */
  onFailed(error: Error): void;
  /**
   * Why no space can be had for another segment (`disk_full` to appends), at most every 30 s; null when there is some
   * again after that.
   */
  onFull?(reason: string | null): void;
}

/** The write-ahead log on the ack path. One owner, one thread. */
export interface Journal {
  /** Random id of this journal, made when it is created; part of WELCOME. */
  readonly id: string;
  /** Highest LSN handed out. */
  readonly reserved: Lsn;
  /** Highest LSN known durable; `durable ≤ reserved`. */
  readonly durable: Lsn;
  /** Entries up to this LSN are trimmed for good: no start replays them. `trimmed ≤ durable`. */
  readonly trimmed: Lsn;
  /** How bytes come to be durable: "uring" | "threads" | "node" | "buffered", or "memory"; shown in /readyz. */
  readonly storage: string;
  /** Why it is this one. */
  readonly storageReason: string;
  /**
   * Takes one entry: copies `parts` (written back to back) into the current batch and returns its LSN. Never waits.
   *
   * @throws ForebayError `record_too_large` | `disk_full` | `journal_failed` | `shutting_down`, nothing taken
   */
  append(parts: readonly Uint8Array[]): Lsn;
  /** Resolves when everything appended before is durable; rejects on failure. */
  flush(): Promise<void>;
  /**
   * The owner needs entries up to `upTo` no more: it has made them durable elsewhere, or they were acknowledged. Never
   * waits; a lower mark than before changes nothing. Segments without a later entry are recycled in the background.
   *
   * @param upTo at most `durable`
   */
  trim(upTo: Lsn): void;
  /**
   * Reads durable entries from the LSN `from` on. While a reader is open, the segment it stands in is not recycled.
   *
   * @throws ForebayError `offset_gone` when that entry is trimmed
   */
  read(from: Lsn): EntryReader;
  /** Flushes, writes the final mark, releases handles, then the lock. */
  close(): Promise<void>;
  /** Exact counters since open, and gauges. */
  stats(): JournalStats;
}

export interface JournalStats {
  readonly entries: number;
  readonly batches: number;
  readonly syncs: number;
  readonly bytesWritten: number;
  /** Segment files, spares counted. */
  readonly segments: number;
  /** Segments made ahead. */
  readonly spares: number;
  readonly bytesHeld: number;
  readonly budgetBytes: number;
  /** Why no space can be had for more entries (`disk_full`); null again when there is some. */
  readonly full: string | null;
  /** Why the journal failed closed. */
  readonly failed: string | null;
}

export interface Entry {
  readonly lsn: Lsn;
  /** Valid until the next call of `next`. */
  readonly bytes: Uint8Array;
}

/** Reads a journal's durable entries in order. Until it is closed, the segment it stands in is not recycled. */
export interface EntryReader {
  /**
   * Some of the next entries; undefined when there is no further durable one yet.
   *
   * @throws ForebayError `journal_corrupt` for bytes that are not what was written
   */
  next(): Promise<readonly Entry[] | undefined>;
  close(): Promise<void>;
}

/** Called for each recovered entry in LSN order, before the journal accepts appends. `bytes` is valid only during the call. */
export type Replay = (lsn: Lsn, bytes: Uint8Array) => void;
