import type { ErrorCode } from "../../shared/errors/mod.ts";
import type { Frame, FrameRequest } from "../../shared/frame/mod.ts";
import { streamId } from "../../shared/ids/mod.ts";
import { type AppendOp, jsonType, newStream, type Op, opKind } from "./entry.ts";
import { quarantinePath, recordTime, type ShardState } from "./state.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The quarantine records of one refused request of an outbox frame: one per record, none of its bytes lost. */
export function quarantineRecords(
  frame: Frame,
  request: FrameRequest,
  index: number,
  code: ErrorCode,
): Uint8Array[] {
  const { stream, acceptedAt, contentType, producer, records } = request;
  const { buffer, epoch, fsn } = frame;
  const about = { stream, code, buffer, epoch, fsn, index, acceptedAt, contentType, producer };
  return records.map((record, part) =>
    encoder.encode(
      JSON.stringify({ ...about, ...(records.length > 1 ? { part } : {}), ...content(record) }),
    ),
  );
}

function content(record: Uint8Array): { text: string } | { base64: string } {
  try {
    return { text: decoder.decode(record) };
  } catch {
    const { buffer, byteOffset, byteLength } = record;
    return { base64: Buffer.from(buffer, byteOffset, byteLength).toString("base64") };
  }
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
