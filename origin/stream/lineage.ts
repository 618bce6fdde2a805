import type { RecordRange, RecordStore } from "../store/mod.ts";
import type { StreamState } from "./state.ts";

/*
 * A fork's records lie in the streams it descends from, and behind those in its own. The store knows nothing of that:
 * it holds for each stream what was appended to that stream, numbered from 0.
 *
 *     source   r0 r1 r2 r3 r4 …
 *     fork     └─── 3 ───┘ f3 f4 …         fork.records = 3: r0 … r2 are the source's, f3 is the store's record 0
 *
 * The last inherited record may be cut: the fork then has the head of it only, and `fork.bytes` says where that ends.
 */

/** The byte position at which record `record` of the stream begins; for `record === stream.record` its end. */
export function positionOf(store: RecordStore, stream: StreamState, record: number): number {
  let holder = stream;
  while (holder.fork !== null && record < holder.fork.records) {
    holder = holder.fork.source;
  }
  const { fork, id } = holder;
  return fork === null
    ? store.position(id, record)
    : fork.bytes + store.position(id, record - fork.records);
}

/**
 * Records from `range.from` on as the stream's readers see them, whoever holds them: as many as fit in `maxBytes` all
 * together, at least one when `from < to`. Views, as the store's.
 */
export function readRecords(
  store: RecordStore,
  stream: StreamState,
  range: RecordRange,
): Uint8Array[] {
  const pieces = piecesOf(stream, range);
  const records: Uint8Array[] = [];
  let next = range.from;
  let left = range.maxBytes;
  for (let piece = pieces.pop(); piece !== undefined; piece = pieces.pop()) {
    if (next > range.from && (next === range.to || lengthOf(store, stream, next) > left)) {
      break;
    }
    if (next === piece.to) {
      continue;
    }
    const { id, fork } = piece.holder;
    const base = fork?.records ?? 0;
    const read = store.read(id, { from: next - base, to: piece.to - base, maxBytes: left });
    next += read.length;
    if (piece.holder !== stream && next === piece.to) {
      cutLast(read, lengthOf(store, stream, next - 1));
    }
    for (const record of read) {
      records.push(record);
      left -= record.length;
    }
    if (next < piece.to) {
      break;
    }
  }
  return records;
}

interface Piece {
  readonly holder: StreamState;
  /** Up to which record of the reading stream the holder's count, exclusive. */
  readonly to: number;
}

/** The stream itself, then what it descends from, up to the one that holds the record `from`. */
function piecesOf(stream: StreamState, { from, to }: RecordRange): Piece[] {
  const pieces = [{ holder: stream, to }];
  let end = to;
  for (let fork = stream.fork; fork !== null && from < fork.records; fork = fork.source.fork) {
    end = Math.min(end, fork.records);
    pieces.push({ holder: fork.source, to: end });
  }
  return pieces;
}

/** The last record a fork inherits may be the head of one. */
function cutLast(records: Uint8Array[], length: number): void {
  const last = records.at(-1);
  if (last !== undefined && length < last.length) {
    records[records.length - 1] = last.subarray(0, length);
  }
}

function lengthOf(store: RecordStore, stream: StreamState, record: number): number {
  return positionOf(store, stream, record + 1) - positionOf(store, stream, record);
}
