import { ForebayError, invariant } from "../../shared/errors/mod.ts";
import { type FrameRequest, type ProducerTag, requestFlag } from "../../shared/frame/mod.ts";
import type { Lsn } from "../../shared/ids/mod.ts";
import { splitJson } from "../../shared/ingest/mod.ts";
import { limits } from "../../shared/limits.ts";
import { compareSeq, header, isReservedPath, mediaType } from "../../shared/protocol/mod.ts";
import type { ProducerState, SeqJudgement } from "./producer.ts";
import { isIdle, type StreamState } from "./state.ts";
import type { Verdict } from "./types.ts";
import { atOnce, duplicate, refuse, reserved, stored, tailOf } from "./verdict.ts";

/** A write of any kind: POST, ingest, or a request of a frame. */
export interface Write {
  readonly path: string;
  /** Null: what was split already goes into any JSON stream. */
  readonly contentType: string | null;
  /** The body as it came; empty when `split` holds records. */
  readonly body: Uint8Array;
  /** Records split and checked before. */
  readonly split: readonly Uint8Array[] | null;
  readonly producer: ProducerTag | null;
  readonly streamSeq: string | null;
  readonly expectedOffset: string | null;
  readonly close: boolean;
  readonly create: boolean;
}

const noBytes = new Uint8Array(0);

/**
 * A request of a frame as the write it is. Without the json flag its one record is a body as it came.
 *
 * @throws ForebayError `bad_frame` when there are several and nothing says where they were split
 */
export function writeOf(request: FrameRequest): Write {
  const split = (request.flags & requestFlag.json) !== 0;
  if (!split && request.records.length > 1) {
    const count = request.records.length;
    throw new ForebayError("bad_frame", `a request of ${count} records lacks the json flag`);
  }
  return {
    path: request.stream,
    contentType: request.contentType,
    body: split ? noBytes : (request.records[0] ?? noBytes),
    split: split ? request.records : null,
    producer: request.producer,
    streamSeq: request.streamSeq,
    expectedOffset: null,
    close: false,
    create: (request.flags & requestFlag.create) !== 0,
  };
}

/** What the request says of itself, whatever the stream: a refusal at once, or null. */
export function judgeShape(write: Write): Verdict | null {
  if (isReservedPath(write.path)) {
    return reserved(write.path);
  }
  if (write.split === null) {
    if (write.body.length === 0) {
      return write.close ? null : refuse("empty_body", "an append needs a body", atOnce);
    }
    if (write.contentType === null) {
      return refuse("missing_content_type", "a body needs a Content-Type", atOnce);
    }
  } else if (write.split.length === 0 || write.split.some((record) => record.length === 0)) {
    return refuse("empty_body", "a request needs records, and each record a byte", atOnce);
  } else if (write.split.length > limits.requestRecordsMax) {
    const detail = `${write.split.length} records, at most ${limits.requestRecordsMax} are allowed`;
    return refuse("too_many_records", detail, atOnce);
  }
  const { producer } = write;
  return producer === null || (isSeq(producer.epoch) && isSeq(producer.seq))
    ? null
    : refuse("bad_producer", `producer epoch ${producer.epoch}, seq ${producer.seq}`, atOnce);
}

const isSeq = (n: number): boolean => Number.isSafeInteger(n) && n >= 0;

/**
 * The protocol's order of checks on a living stream: stale epoch, duplicate, closed, content type, gap, Stream-Seq,
 * expected offset. `seq` is how the producer's seq stands to what the stream remembers (`known`). The gap comes
 * before the two that judge by the tail, which the missing requests would still move.
 *
 * @returns the answer, or null when the write is to be stored
 */
export function judgeWrite(
  stream: StreamState,
  write: Write,
  seq: SeqJudgement,
  known: ProducerState | undefined,
): Verdict | null {
  if (known !== undefined && seq === "stale") {
    const detail = `producer epoch ${write.producer?.epoch} is below ${known.epoch}`;
    return refuse("stale_epoch", detail, stream.lsn, [header.producerEpoch, String(known.epoch)]);
  }
  if (known !== undefined && seq === "duplicate") {
    return duplicate(stream, known.epoch, known.highest);
  }
  if (stream.closed) {
    return judgeClosed(stream, write);
  }
  if ((write.split !== null || write.body.length > 0) && !typeMatches(stream, write.contentType)) {
    const detail = `the stream is ${stream.contentType}, not ${write.contentType ?? "JSON"}`;
    return refuse("content_type_mismatch", detail, stream.lsn);
  }
  if (seq !== "fresh") {
    invariant(write.producer !== null, "only a producer's seq can be out of place");
    return refuseSeq(stream.lsn, write.producer, seq, known);
  }
  const { streamSeq, expectedOffset } = write;
  if (isRegression(streamSeq, stream.streamSeq)) {
    const detail = `Stream-Seq ${JSON.stringify(streamSeq)} is not above ${JSON.stringify(stream.streamSeq)}`;
    return refuse("stream_seq_regression", detail, stream.lsn);
  }
  if (expectedOffset !== null && expectedOffset !== tailOf(stream)) {
    const tail = tailOf(stream);
    const detail = `the tail is ${tail}, not ${JSON.stringify(expectedOffset)}`;
    return refuse("offset_mismatch", detail, stream.lsn, [header.nextOffset, tail]);
  }
  return null;
}

/** Whether a Stream-Seq does not rise above the last one. */
export function isRegression(streamSeq: string | null, last: string | null): boolean {
  return streamSeq !== null && last !== null && compareSeq(streamSeq, last) <= 0;
}

/** A close without body and producer is idempotent; anything else on a closed stream is a conflict. */
function judgeClosed(stream: StreamState, write: Write): Verdict {
  if (write.close && write.producer === null && write.split === null && write.body.length === 0) {
    return stored(stream, null, true);
  }
  const tail = tailOf(stream);
  const headers = [header.closed, "true", header.nextOffset, tail];
  return refuse("stream_closed", `the stream was closed at ${tail}`, stream.lsn, headers);
}

function typeMatches(stream: StreamState, contentType: string | null): boolean {
  if (contentType === null) {
    return stream.json;
  }
  return contentType === stream.contentType || mediaType(contentType) === stream.mediaType;
}

export function refuseSeq(
  judgedBy: Lsn,
  tag: ProducerTag,
  seq: SeqJudgement,
  known: ProducerState | undefined,
): Verdict {
  if (seq === "badStart") {
    const detail = `producer epoch ${tag.epoch} starts at seq ${tag.seq} instead of 0`;
    return refuse("bad_epoch_start", detail, judgedBy);
  }
  if (seq === "tooOld") {
    const detail = `seq ${tag.seq} is below the window that ends at ${known?.highest}`;
    return refuse("seq_too_old", detail, judgedBy);
  }
  const expected = known === undefined ? 0 : known.highest + 1;
  const detail = `seq ${tag.seq} came where ${expected} is next`;
  return refuse("producer_gap", detail, judgedBy, [
    header.producerExpectedSeq,
    String(expected),
    header.producerReceivedSeq,
    String(tag.seq),
  ]);
}

/** Whether one more producer, besides `more` others about to come, finds no place even when the idle ones leave. */
export function producersFull(stream: StreamState, now: number, more: number): boolean {
  const producers = stream.producers;
  const held = producers === null ? more : producers.size + more;
  if (producers === null || held < limits.producersPerStreamMax) {
    return held >= limits.producersPerStreamMax;
  }
  if (now < stream.producersIdleFrom) {
    return true;
  }
  let idle = 0;
  let oldest = now;
  for (const producer of producers.values()) {
    idle += isIdle(producer, now) ? 1 : 0;
    oldest = Math.min(oldest, producer.usedAt);
  }
  stream.producersIdleFrom = idle > 0 ? 0 : oldest + limits.producerIdleMsMax;
  return held - idle >= limits.producersPerStreamMax;
}

export function tooManyProducers(stream: StreamState): Verdict {
  const detail = `the stream remembers ${limits.producersPerStreamMax} producers; wait until one was idle for 7 days`;
  return refuse("too_many_producers", detail, stream.lsn);
}

/** Payload bytes of a write, at most. */
export function bytesOf(write: Write): number {
  let bytes = write.body.length;
  for (const record of write.split ?? []) {
    bytes += record.length;
  }
  return bytes;
}

/**
 * The records of a write. A JSON stream flattens one array level; every other takes the body as one record.
 *
 * @throws ForebayError `bad_json`, `empty_array`, `too_many_records` …
 */
export function recordsOf(json: boolean, write: Write, emptyArray: boolean): readonly Uint8Array[] {
  if (write.split !== null) {
    return write.split;
  }
  if (write.body.length === 0) {
    return [];
  }
  if (!json) {
    return [write.body];
  }
  const records = splitJson(write.body);
  if (records.length === 0 && !emptyArray) {
    throw new ForebayError("empty_array", "[] holds no record; an append needs one");
  }
  return records;
}
