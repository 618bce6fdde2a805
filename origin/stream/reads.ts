import { formatOffset, header, parseOffset } from "../../shared/protocol/mod.ts";
import { positionOf, readRecords } from "./lineage.ts";
import type { Shard } from "./shard.ts";
import type { StreamState } from "./state.ts";
import type { ListedStream, ReadBatch, ReadOptions, StreamMeta, Verdict } from "./types.ts";
import { absent, refuse, tailOf } from "./verdict.ts";
import { refusedBy } from "./writes.ts";

export function meta(shard: Shard, path: string): StreamMeta | Verdict {
  const stream = shard.find(path, shard.clock.now());
  return stream === undefined ? absent(shard.state, path) : metaOf(stream);
}

function metaOf(stream: StreamState): StreamMeta {
  return {
    id: stream.id,
    contentType: stream.contentType,
    json: stream.json,
    closed: stream.closed,
    tail: tailOf(stream),
    ttlSeconds: stream.ttlSeconds,
    expiresAt: stream.expiresAt?.text ?? null,
    lsn: stream.lsn,
  };
}

/** Durable records only: what the tail beyond them will be is not told before it is sure. */
export function read(
  shard: Shard,
  path: string,
  offset: string,
  options: ReadOptions,
): ReadBatch | Verdict {
  const now = shard.clock.now();
  const stream = shard.find(path, now);
  if (stream === undefined) {
    return absent(shard.state, path);
  }
  const { id } = options;
  if (id !== undefined && id !== stream.id) {
    const detail = `${JSON.stringify(path)} is another stream now: ${id} was followed by ${stream.id}`;
    return refuse("stream_gone", detail, stream.createdLsn);
  }
  try {
    return readFrom(shard, stream, offset, options);
  } catch (error) {
    return refusedBy(error, stream.createdLsn);
  }
}

function readFrom(
  shard: Shard,
  stream: StreamState,
  offset: string,
  options: ReadOptions,
): ReadBatch | Verdict {
  const from = startOf(shard, stream, offset);
  if (from === undefined) {
    const tail = formatOffset(stream.durableRecord, stream.durableByte);
    const detail = `offset ${JSON.stringify(offset.slice(0, 64))} is none of this stream, whose tail is ${tail}`;
    return refuse("bad_offset", detail, stream.createdLsn, [header.nextOffset, tail]);
  }
  if (options.touch) {
    shard.touch(stream, shard.clock.now());
  }
  return batch(shard, stream, from, options.maxBytes);
}

/** The record at which `offset` points; undefined when it is malformed, past the tail or within a record. */
function startOf(shard: Shard, stream: StreamState, offset: string): number | undefined {
  if (offset === "-1") {
    return 0;
  }
  if (offset === "now") {
    return stream.durableRecord;
  }
  const parsed = parseOffset(offset);
  if (parsed === undefined || parsed.record > stream.durableRecord) {
    return undefined;
  }
  return positionOf(shard.store, stream, parsed.record) === parsed.byte ? parsed.record : undefined;
}

function batch(shard: Shard, stream: StreamState, from: number, maxBytes: number): ReadBatch {
  const { store } = shard;
  const to = stream.durableRecord;
  const records = from === to ? [] : readRecords(store, stream, { from, to, maxBytes });
  const next = from + records.length;
  const upToDate = next === to;
  return {
    id: stream.id,
    records,
    start: formatOffset(from, positionOf(store, stream, from)),
    next: formatOffset(next, positionOf(store, stream, next)),
    upToDate,
    closed: upToDate && stream.durableClosed,
    lsn: stream.createdLsn,
  };
}

/** Living streams below `prefix` behind `after`, by path. */
export function list(shard: Shard, prefix: string, after: string, limit: number): ListedStream[] {
  const now = shard.clock.now();
  const paths: string[] = [];
  for (const path of shard.state.byPath.keys()) {
    if (path > after && path.startsWith(prefix)) {
      paths.push(path);
    }
  }
  const listed: ListedStream[] = [];
  for (const path of paths.sort()) {
    if (listed.length >= limit) {
      break;
    }
    const stream = shard.find(path, now);
    if (stream !== undefined) {
      listed.push({ path, ...metaOf(stream) });
    }
  }
  return listed;
}
