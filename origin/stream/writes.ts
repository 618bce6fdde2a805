import { ForebayError, invariant } from "../../shared/errors/mod.ts";
import type { ProducerTag } from "../../shared/frame/mod.ts";
import type { Lsn } from "../../shared/ids/mod.ts";
import { isJson, isReservedPath } from "../../shared/protocol/mod.ts";
import { clampTime } from "./bytes.ts";
import { type AppendOp, type CreateOp, jsonType, newStream, opKind } from "./entry.ts";
import { judgeWrite, producersFull, refuseSeq, tooManyProducers } from "./judge.ts";
import { judgeDirect } from "./producer.ts";
import { bytesOf, judgeShape, newStreamType, recordsOf, type Write } from "./request.ts";
import type { Shard } from "./shard.ts";
import { producerOf, recordTime, type StreamState } from "./state.ts";
import type { CreateRequest, Verdict } from "./types.ts";
import { created, notFound, refusalOf, refuse, removed, reserved, stored } from "./verdict.ts";

const defaultType = "application/octet-stream";

/** PUT: creates the stream, or finds it with the same configuration (Durable Streams §5.1). */
export function create(shard: Shard, request: CreateRequest): Verdict {
  const { path, body, closed } = request;
  if (isReservedPath(path)) {
    return reserved(path);
  }
  const now = shard.clock.now();
  const existing = shard.find(path, now);
  const contentType = request.contentType ?? defaultType;
  const first: Write = { ...plain, path, contentType, body, close: closed };
  let records: readonly Uint8Array[];
  try {
    const type = newStreamType(contentType);
    if (existing !== undefined) {
      return createdAgain(existing, request, type);
    }
    records = recordsOf(isJson(type), first, true);
    shard.store.admit(body.length);
  } catch (error) {
    return refusedBy(error, shard.state.endLsn);
  }
  const op: CreateOp = {
    ...newStream(shard.state.lastId + 1, path, contentType, now),
    ttlSeconds: request.ttlSeconds,
    expiresAt: expiryOf(request),
    closed: closed && records.length === 0,
  };
  const stream = makeStream(
    shard,
    op,
    records.length === 0 ? null : appendOp(op.id, first, records, now),
  );
  return created(stream, 201);
}

const plain = {
  split: null,
  producer: null,
  streamSeq: null,
  expectedOffset: null,
  create: false,
} as const;

function createdAgain(stream: StreamState, request: CreateRequest, type: string): Verdict {
  const same =
    type === stream.mediaType &&
    request.ttlSeconds === stream.ttlSeconds &&
    expiryOf(request)?.ms === stream.expiresAt?.ms &&
    request.closed === stream.closed;
  if (same) {
    return created(stream, 200);
  }
  const detail =
    `${JSON.stringify(stream.path)} exists as ${stream.contentType}, TTL ${stream.ttlSeconds ?? "none"}, ` +
    `Expires-At ${stream.expiresAt?.text ?? "none"}, ${stream.closed ? "closed" : "open"}`;
  return refuse("stream_conflict", detail, stream.lsn);
}

function expiryOf({ expiresAt }: CreateRequest): CreateOp["expiresAt"] {
  return expiresAt === null ? null : { text: expiresAt.text, ms: clampTime(expiresAt.ms) };
}

/** POST, ingest, or one request of a direct frame: judged, stored in one entry, answered. */
export function write(shard: Shard, request: Write): Verdict {
  const shape = judgeShape(request);
  if (shape !== null) {
    return shape;
  }
  const { path, producer } = request;
  const now = shard.clock.now();
  const stream = shard.find(path, now);
  if (stream === undefined) {
    return request.create ? createBy(shard, request, now) : notFound(path, shard.state.endLsn);
  }
  const time = recordTime(stream, now);
  let records: readonly Uint8Array[];
  try {
    const refusal =
      producer === null
        ? judgeWrite(stream, request, "fresh", undefined)
        : judgeProduced(stream, request, producer, time);
    if (refusal !== null) {
      return refusal;
    }
    records = recordsOf(stream.json, request, false);
    shard.store.admit(bytesOf(request));
  } catch (error) {
    return refusedBy(error, stream.lsn);
  }
  shard.commit(appendOp(stream.id, request, records, time));
  return stored(stream, producer, records.length === 0);
}

function judgeProduced(
  stream: StreamState,
  request: Write,
  producer: ProducerTag,
  time: number,
): Verdict | null {
  const known = producerOf(stream, producer.id, time);
  const seq = judgeDirect(known, producer.epoch, producer.seq);
  const refusal = judgeWrite(stream, request, seq, known);
  if (refusal === null && known === undefined && producersFull(stream, time, 0)) {
    return tooManyProducers(stream);
  }
  return refusal;
}

/** The first write to a path whose key may create streams: stream and records in one entry. */
function createBy(shard: Shard, request: Write, now: number): Verdict {
  const { path, producer } = request;
  const judgedBy = shard.state.endLsn;
  if (producer !== null && producer.seq !== 0) {
    return refuseSeq(judgedBy, producer, "gap", undefined);
  }
  const contentType = request.contentType ?? jsonType;
  let records: readonly Uint8Array[];
  try {
    records = recordsOf(isJson(newStreamType(contentType)), request, false);
    shard.store.admit(bytesOf(request));
  } catch (error) {
    return refusedBy(error, judgedBy);
  }
  const op = newStream(shard.state.lastId + 1, path, contentType, now);
  const stream = makeStream(shard, op, appendOp(op.id, request, records, now));
  return stored(stream, producer, records.length === 0);
}

/** DELETE: the stream's life ends; the path may be created again at once. */
export function remove(shard: Shard, path: string): Verdict {
  if (isReservedPath(path)) {
    return reserved(path);
  }
  const now = shard.clock.now();
  const stream = shard.find(path, now);
  if (stream === undefined) {
    return notFound(path, shard.state.endLsn);
  }
  return removed(shard.end(stream, opKind.delete, now));
}

function appendOp(
  id: AppendOp["id"],
  request: Write,
  records: readonly Uint8Array[],
  time: number,
): AppendOp {
  return {
    kind: opKind.append,
    id,
    time,
    producer: request.producer,
    streamSeq: request.streamSeq,
    acceptedAt: null,
    records,
    close: request.close,
  };
}

function makeStream(shard: Shard, op: CreateOp, append: AppendOp | null): StreamState {
  if (append === null) {
    shard.commit(op);
  } else {
    shard.commitAll([op, append]);
  }
  const stream = shard.state.byId.get(op.id);
  invariant(stream !== undefined, "a created stream is there");
  return stream;
}

/** What judging a body or asking the store can throw, as the refusal it is. */
function refusedBy(error: unknown, judgedBy: Lsn): Verdict {
  if (error instanceof ForebayError) {
    return refusalOf(error, judgedBy);
  }
  throw error;
}
