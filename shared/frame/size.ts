import { limits } from "../limits.ts";
import { frameFlag, type FrameRequest } from "./types.ts";

/** `u32 length | u32 crc | u8 type` before a message's body. */
export const prefixBytes = 9;

/** The longest string length tag of MessagePack. */
const stringTagBytes = 5;
/** A UTF-16 code unit takes at most three bytes of UTF-8. */
const utf8BytesPerUnit = 3;

/**
 * An outbox frame without its requests, at most: prefix, header length, version and flags, buffer and epoch (the
 * shapes of a position: 38 and 32 ASCII characters), boot and FSN, the two list tags.
 */
const emptyFrameBytes =
  prefixBytes + 4 + 1 + 2 + (stringTagBytes + 38) + (stringTagBytes + 32) + 18 + 10;

/** Array tag, stream index, number of records, flags, acceptedAt, producer epoch and seq. */
const requestFixedBytes = 1 + 5 + 5 + 1 + 9 + 9 + 9;

const stringBytes = (text: string | null): number =>
  text === null ? 1 : stringTagBytes + utf8BytesPerUnit * text.length;

/** An upper bound of what `request` adds to a frame, its stream's path included. */
export function requestBytes(request: FrameRequest): number {
  let bytes =
    requestFixedBytes +
    stringTagBytes +
    request.stream.length +
    stringBytes(request.contentType) +
    stringBytes(request.producer === null ? null : request.producer.id) +
    stringBytes(request.streamSeq);
  for (const record of request.records) {
    bytes += 4 + record.length;
  }
  return bytes;
}

/** An upper bound of the encoded message of a frame with these requests. */
export function frameBytes(requests: readonly FrameRequest[]): number {
  let bytes = emptyFrameBytes;
  for (const request of requests) {
    bytes += requestBytes(request);
  }
  return bytes;
}

/** A body of `bodyBytesMax` split into records, each with its length, and the header before them. */
const directFrameBytesMax = limits.bodyBytesMax + 64 * 1024;

/** The longest message of a frame: an outbox row, or one request that waits for its answer. */
export function frameBytesMaxOf(flags: number): number {
  return (flags & frameFlag.direct) === 0 ? limits.frameBytesMax : directFrameBytesMax;
}

/** No message is longer than this. */
export const messageBytesMax: number = directFrameBytesMax;
