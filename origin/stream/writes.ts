import { ForebayError, invariant } from "../../shared/errors/mod.ts";
import type { ProducerTag } from "../../shared/frame/mod.ts";
import type { Lsn } from "../../shared/ids/mod.ts";
import { isJson, isReservedPath } from "../../shared/protocol/mod.ts";
import { type AppendOp, type CreateOp, jsonType, newStream, opKind } from "./entry.ts";
import { judgeWrite, producersFull, refuseSeq, tooManyProducers } from "./judge.ts";
import { judgeDirect } from "./producer.ts";
import { bytesOf, judgeShape, newStreamType, recordsOf, type Write } from "./request.ts";
import type { Shard } from "./shard.ts";
import { producerOf, recordTime, type StreamState } from "./state.ts";
import type { Verdict } from "./types.ts";
import { absent, refusalOf, removed, reserved, stored } from "./verdict.ts";

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
    return request.create && !shard.state.softDeleted.has(path)
      ? createBy(shard, request, now)
      : absent(shard.state, path);
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
    return absent(shard.state, path);
  }
  return removed(shard.end(stream, opKind.delete, now));
}

export function appendOp(
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

/** A new stream with its first records, if there are any, in one entry. */
export function makeStream(shard: Shard, op: CreateOp, append: AppendOp | null): StreamState {
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
export function refusedBy(error: unknown, judgedBy: Lsn): Verdict {
  if (error instanceof ForebayError) {
    return refusalOf(error, judgedBy);
  }
  throw error;
}
