import { type ErrorCode, ForebayError } from "../../shared/errors/mod.ts";
import type { Frame, FrameRequest } from "../../shared/frame/mod.ts";
import { lsn } from "../../shared/ids/mod.ts";
import { limits } from "../../shared/limits.ts";
import { clampTime } from "./bytes.ts";
import { type CreateOp, jsonType, newStream, type Op, opKind } from "./entry.ts";
import { isRegression, judgeWrite, producersFull } from "./judge.ts";
import { admitSeq, judgeForwarded, type ProducerState } from "./producer.ts";
import { quarantineOps, quarantineRecord } from "./quarantine.ts";
import { bytesOf, judgeShape, newStreamType, recordsOf, type Write, writeOf } from "./request.ts";
import type { Shard } from "./shard.ts";
import { producerOf, recordTime, type StreamState, streamOf } from "./state.ts";

/** A stream as it stands after the frame's requests so far. */
interface DraftStream {
  readonly stream: StreamState;
  /** Producers the frame moved: copies, laid over the stream's own. */
  readonly producers: Map<string, ProducerState>;
  /** How many of them the stream did not know. */
  fresh: number;
  streamSeq: string | null;
  /** Creates it, when the frame does; set until a request of it is stored. */
  begin: CreateOp | null;
}

function draftOf(stream: StreamState, begin: CreateOp | null): DraftStream {
  return { stream, producers: new Map(), fresh: 0, streamSeq: stream.streamSeq, begin };
}

/**
 * The entry of one outbox frame in the making. Requests are judged one after the other, each by what those before it
 * will have done; the shard's own state stays as it is until the entry is in the journal.
 */
export class FrameDraft {
  readonly #shard: Shard;
  readonly #frame: Frame;
  readonly #now: number;
  readonly #ops: Op[] = [];
  readonly #streams: Map<string, DraftStream> = new Map();
  /** One for each request that goes to quarantine. */
  readonly #held: Uint8Array[] = [];
  #nextId: number;
  #deduplicated = 0;
  #quarantined = 0;
  #bytes = 0;

  constructor(shard: Shard, frame: Frame) {
    this.#shard = shard;
    this.#frame = frame;
    this.#now = shard.clock.now();
    this.#nextId = shard.state.lastId + 1;
  }

  /** Payload bytes the entry brings to the store. */
  get bytes(): number {
    return this.#bytes;
  }

  take(request: FrameRequest, index: number): void {
    const code = this.#judge(request);
    if (code === null) {
      return;
    }
    const record = quarantineRecord(this.#frame, request, index, code);
    this.#held.push(record);
    this.#quarantined += request.records.length;
    this.#bytes += record.length;
  }

  /** The ops of the whole frame. */
  finish(): Op[] {
    const { buffer, epoch, boot, fsn } = this.#frame;
    if (this.#held.length > 0) {
      const { state } = this.#shard;
      this.#ops.push(...quarantineOps(state, this.#held, this.#nextId, this.#now));
      this.#ops.push({ kind: opKind.quarantined, records: this.#quarantined });
    }
    const deduplicated = this.#deduplicated;
    this.#ops.push({ kind: opKind.advance, buffer, epoch, boot, fsn, deduplicated });
    return this.#ops;
  }

  /** Stores the request or finds it stored, and returns null; or the code it goes to quarantine with. */
  #judge(request: FrameRequest): ErrorCode | null {
    const known = this.#streams.get(request.stream) ?? this.#lookUp(request.stream);
    try {
      const write = writeOf(request);
      const shape = judgeShape(write);
      if (shape !== null) {
        return shape.code;
      }
      const acceptedAt = clampTime(request.acceptedAt);
      const draft = this.#settle(known, write, acceptedAt);
      return typeof draft === "string" ? draft : this.#store(draft, write, request);
    } catch (error) {
      if (error instanceof ForebayError) {
        return error.code;
      }
      throw error;
    }
  }

  #lookUp(path: string): DraftStream | undefined {
    const stream = this.#shard.find(path, this.#now);
    return stream === undefined ? undefined : this.#remember(draftOf(stream, null));
  }

  #remember(draft: DraftStream): DraftStream {
    this.#streams.set(draft.stream.path, draft);
    return draft;
  }

  /**
   * The stream of a request, begun when it may be; or why the request belongs to none. What was accepted before the
   * stream was there belongs to an earlier life of the path. With the create flag only an earlier life that ended
   * later than that counts, since the request itself would have begun the stream.
   */
  #settle(
    known: DraftStream | undefined,
    write: Write,
    acceptedAt: number,
  ): DraftStream | ErrorCode {
    const latest = acceptedAt + limits.edgeClockSkewMsMax;
    if (known !== undefined) {
      const { previousEndedAt, createdAt } = known.stream;
      return latest < (write.create ? previousEndedAt : createdAt) ? "stream_recreated" : known;
    }
    if (this.#shard.state.softDeleted.has(write.path)) {
      return "stream_gone";
    }
    if (!write.create) {
      return "stream_not_found";
    }
    const endedAt = this.#shard.state.ends.get(write.path)?.at ?? 0;
    return latest < endedAt ? "stream_gone" : this.#begin(write, acceptedAt, endedAt);
  }

  /** The stream begins when the edge took its first record, so that what the edge took next is not before it. */
  #begin(write: Write, acceptedAt: number, endedAt: number): DraftStream {
    const contentType = write.contentType ?? jsonType;
    newStreamType(contentType);
    const createdAt = Math.min(this.#now, Math.max(acceptedAt, endedAt));
    const op = newStream(this.#nextId, write.path, contentType, createdAt);
    const ancestry = { previousEndedAt: endedAt, source: null };
    return draftOf(streamOf(op, ancestry, lsn(0)), op);
  }

  #store(draft: DraftStream, write: Write, request: FrameRequest): ErrorCode | null {
    const { stream } = draft;
    const { producer, streamSeq } = write;
    const time = recordTime(stream, this.#now);
    const known =
      producer === null
        ? undefined
        : (draft.producers.get(producer.id) ?? producerOf(stream, producer.id, time));
    const seq = producer === null ? "fresh" : judgeForwarded(known, producer.epoch, producer.seq);
    const verdict = judgeWrite(stream, write, seq, known);
    if (verdict !== null) {
      this.#deduplicated += verdict.code === null ? request.records.length : 0;
      return verdict.code;
    }
    if (isRegression(streamSeq, draft.streamSeq)) {
      return "stream_seq_regression";
    }
    if (producer !== null && known === undefined && producersFull(stream, time, draft.fresh)) {
      return "too_many_producers";
    }
    const records = recordsOf(stream.json, write, false);
    if (draft.begin !== null) {
      this.#ops.push(draft.begin);
      this.#nextId += 1;
      draft.begin = null;
      this.#remember(draft);
    }
    this.#bytes += bytesOf(write);
    draft.streamSeq = streamSeq ?? draft.streamSeq;
    if (producer !== null) {
      draft.fresh += known === undefined ? 1 : 0;
      const copy = known === undefined ? undefined : { ...known };
      draft.producers.set(producer.id, admitSeq(copy, producer, time));
    }
    const acceptedAt = clampTime(request.acceptedAt);
    const id = stream.id;
    this.#ops.push({
      kind: opKind.append,
      id,
      time,
      producer,
      streamSeq,
      acceptedAt,
      records,
      close: false,
    });
    return null;
  }
}
