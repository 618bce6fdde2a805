import { ForebayError } from "../../shared/errors/mod.ts";
import { type FrameRequest, type ProducerTag, requestFlag } from "../../shared/frame/mod.ts";
import { checkJsonValue, splitJson } from "../../shared/ingest/mod.ts";
import { limits } from "../../shared/limits.ts";
import { isReservedPath, mediaType, normalizeStreamPath } from "../../shared/protocol/mod.ts";
import type { Verdict } from "./types.ts";
import { atOnce, refuse, reserved } from "./verdict.ts";

/** A write of any kind: POST, ingest, or a request of a frame. */
export interface Write {
  readonly path: string;
  /** Null: what was split already goes into any JSON stream. */
  readonly contentType: string | null;
  /** The body as it came; empty when `split` holds records. */
  readonly body: Uint8Array;
  /** Records that were split before. */
  readonly split: readonly Uint8Array[] | null;
  /** This process split them and knows them to be JSON values; an edge's word is not enough for a stream of JSON. */
  readonly checked: boolean;
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
 * @throws ForebayError `bad_frame` when there are several and nothing says where they were split, `bad_path` for a
 *   path that is not in the canonical form under which every stream is found
 */
export function writeOf(request: FrameRequest): Write {
  if (normalizeStreamPath(request.stream) !== request.stream) {
    const found = JSON.stringify(request.stream.slice(0, 200));
    throw new ForebayError("bad_path", `the stream path ${found} is not in canonical form`);
  }
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
    checked: false,
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
  return (
    (write.split === null ? judgeBody(write) : judgeRecords(write.split)) ??
    (write.producer === null ? null : judgeTag(write.producer)) ??
    (write.streamSeq === null ? null : judgeStreamSeq(write.streamSeq))
  );
}

function judgeBody({ body, close, contentType }: Write): Verdict | null {
  if (body.length === 0) {
    return close ? null : refuse("empty_body", "an append needs a body", atOnce);
  }
  if (body.length > limits.bodyBytesMax) {
    const detail = `the body has ${body.length} bytes, the limit is ${limits.bodyBytesMax}`;
    return refuse("body_too_large", detail, atOnce);
  }
  return contentType === null
    ? refuse("missing_content_type", "a body needs a Content-Type", atOnce)
    : null;
}

function judgeRecords(records: readonly Uint8Array[]): Verdict | null {
  if (records.length > limits.requestRecordsMax) {
    const detail = `${records.length} records, at most ${limits.requestRecordsMax} are allowed`;
    return refuse("too_many_records", detail, atOnce);
  }
  if (records.length === 0 || records.some((record) => record.length === 0)) {
    return refuse("empty_body", "a request needs records, and each record a byte", atOnce);
  }
  const large = records.findIndex((record) => record.length > limits.recordBytesMax);
  if (large !== -1) {
    const detail = `record ${large} has ${records[large]?.length} bytes, the limit is ${limits.recordBytesMax}`;
    return refuse("record_too_large", detail, atOnce);
  }
  return null;
}

function judgeTag({ id, epoch, seq }: ProducerTag): Verdict | null {
  if (isCount(epoch) && isCount(seq) && id !== "" && id.length <= limits.producerIdBytesMax) {
    return null;
  }
  const detail = `producer ${JSON.stringify(id.slice(0, 64))} of ${id.length} characters, epoch ${epoch}, seq ${seq}`;
  return refuse("bad_producer", detail, atOnce);
}

const isCount = (n: number): boolean => Number.isSafeInteger(n) && n >= 0;

function judgeStreamSeq(streamSeq: string): Verdict | null {
  if (streamSeq !== "" && streamSeq.length <= limits.streamSeqBytesMax) {
    return null;
  }
  const detail = `Stream-Seq has ${streamSeq.length} characters, it needs 1 to ${limits.streamSeqBytesMax}`;
  return refuse("bad_header", detail, atOnce);
}

/** What a header field may hold: no control characters, which would make every answer of the stream impossible. */
const fieldText = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * The media type of a stream to be made as `contentType`.
 *
 * @throws ForebayError `bad_header`
 */
export function newStreamType(contentType: string): string {
  if (!fieldText.test(contentType)) {
    const found = JSON.stringify(contentType.slice(0, 64));
    throw new ForebayError("bad_header", `Content-Type ${found} holds control characters`);
  }
  return mediaType(contentType);
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
 * One record that is no JSON value would make every answer that holds it unreadable.
 *
 * @throws ForebayError `bad_json`, `bad_utf8`, `json_too_deep`
 */
function checkRecords(records: readonly Uint8Array[]): void {
  for (const [index, record] of records.entries()) {
    try {
      checkJsonValue(record);
    } catch (error) {
      throw error instanceof ForebayError
        ? new ForebayError(error.code, `record ${index}: ${error.message}`, { cause: error })
        : error;
    }
  }
}

/**
 * The records of a write. A JSON stream flattens one array level; every other takes the body as one record.
 *
 * @throws ForebayError `bad_json`, `empty_array`, `too_many_records` …
 */
export function recordsOf(json: boolean, write: Write, emptyArray: boolean): readonly Uint8Array[] {
  if (write.split !== null) {
    if (json && !write.checked) {
      checkRecords(write.split);
    }
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
