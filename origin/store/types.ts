import type { StreamId } from "../../shared/ids/mod.ts";

/**
 * Where the records of streams lie. It knows ids, numbers and bytes; paths, producers and what is durable are the
 * streams' affair. All methods are synchronous. Record numbers of a stream are dense from 0.
 */
export interface RecordStore {
  /** Bytes the store may hold. */
  readonly bytesMax: number;
  /** Bytes held now, what was set aside for growth included. */
  readonly bytesHeld: number;
  /**
   * Asks whether `bytes` more can be taken; called before anything is consumed.
   *
   * @throws ForebayError `store_full`, nothing changed
   */
  admit(bytes: number): void;
  /** Copies `records` (at least one) behind the stream's last one. Never refuses: what was admitted is taken. */
  append(stream: StreamId, records: readonly Uint8Array[]): void;
  /** Records the stream holds, 0 for an unknown one. */
  count(stream: StreamId): number;
  /** Byte position at which record `record` begins; for `record === count` the end. `0 ≤ record ≤ count`. */
  position(stream: StreamId, record: number): number;
  /**
   * Records from `from` on, before `to`, as views: as many whole ones as fit in `maxBytes`, at least one when
   * `from < to`. The views are valid until the event loop turns.
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
