import type { ErrorCode } from "../../shared/errors/mod.ts";
import { type Frame, type FrameRequest, requestFlag } from "../../shared/frame/mod.ts";
import { streamId } from "../../shared/ids/mod.ts";
import { utf8Bytes, utf8Text } from "../../shared/utf8/mod.ts";
import { type AppendOp, jsonType, newStream, type Op, opKind } from "./entry.ts";
import { quarantinePath, recordTime, type ShardState } from "./state.ts";

/** Text that grows by more than this in JSON, which means control characters, is kept in base64. */
const escapedTimesMax = 2;

/**
 * The quarantine record of a refused request of an outbox frame (FORMAT.md): what is known of the request once, then
 * its records, none of their bytes lost.
 */
export function quarantineRecord(
  frame: Frame,
  request: FrameRequest,
  index: number,
  code: ErrorCode,
): Uint8Array {
  const { stream, flags, acceptedAt, contentType, producer, records } = request;
  const { buffer, epoch, fsn } = frame;
  const split = (flags & requestFlag.json) !== 0;
  const about = { stream, code, buffer, epoch, fsn, index, acceptedAt, contentType, producer };
  const head = JSON.stringify({ ...about, split }).slice(0, -1);
  return utf8Bytes(`${head},"records":[${records.map(content).join(",")}]}`);
}

/** One record as JSON. */
function content(record: Uint8Array): string {
  const text = utf8Text(record);
  if (text !== undefined) {
    const json = JSON.stringify(text);
    if (json.length - 2 <= text.length * escapedTimesMax) {
      return `{"text":${json}}`;
    }
  }
  const { buffer, byteOffset, byteLength } = record;
  return `{"base64":"${Buffer.from(buffer, byteOffset, byteLength).toString("base64")}"}`;
}

/** The ops that write `records` to the quarantine stream; it is created as `newId` when it is missing. */
export function quarantineOps(
  state: ShardState,
  records: readonly Uint8Array[],
  newId: number,
  now: number,
): Op[] {
  const stream = state.byPath.get(quarantinePath);
  const create = stream === undefined ? newStream(newId, quarantinePath, jsonType, now) : null;
  const append: AppendOp = {
    kind: opKind.append,
    id: stream?.id ?? streamId(newId),
    time: stream === undefined ? now : recordTime(stream, now),
    producer: null,
    streamSeq: null,
    acceptedAt: null,
    records,
    close: false,
  };
  return create === null ? [append] : [create, append];
}
