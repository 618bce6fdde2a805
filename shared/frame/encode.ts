import { Encoder } from "@msgpack/msgpack";
import { crc32c } from "../crc/mod.ts";
import { ForebayError } from "../errors/mod.ts";
import { frameBytesMaxOf, messageBytesMax, prefixBytes } from "./size.ts";
import {
  frameFlag,
  frameVersion,
  messageType,
  type Frame,
  type FrameRequest,
  type LinkMessage,
  type RequestResult,
} from "./types.ts";

/** One encoder for all: its buffer is read before the next call, never kept. */
const encoder = new Encoder({ initialBufferSize: 16 * 1024 });

/**
 * The message's bytes, complete in themselves: messages stored one by one become a POST body by plain
 * concatenation. The records are copied once, into the result.
 *
 * @throws ForebayError `frame_too_large`
 */
export function encodeMessage(message: LinkMessage): Uint8Array<ArrayBuffer> {
  if (message.type === "frame") {
    return encodeFrame(message.frame);
  }
  const body = encoder.encodeSharedRef(messageFields(message));
  const out = newMessage(body.length, messageBytesMax);
  out.set(body, prefixBytes);
  return sealed(out, messageType[message.type]);
}

type Control = Exclude<LinkMessage, { readonly type: "frame" }>;

function messageFields(message: Control): readonly unknown[] {
  switch (message.type) {
    case "hello": {
      const { buffer, epoch, boot, highestFsn } = message.hello;
      return [frameVersion, buffer, epoch, boot, highestFsn];
    }
    case "welcome": {
      const { journalId, buffer, durableFsn, latestBoot } = message.welcome;
      return [frameVersion, journalId, buffer, durableFsn, latestBoot];
    }
    case "ack": {
      const { buffer, epoch, received, durable, replicated } = message.ack;
      return [buffer, epoch, received, durable, replicated];
    }
    case "nack": {
      const { buffer, epoch, fsn, code, retryable, expectedFsn, message: text } = message.nack;
      return [buffer, epoch, fsn, code, retryable, expectedFsn, text];
    }
    case "results":
      return message.results.map(resultFields);
    case "credit":
      return [message.credit.buffer, message.credit.bytes];
  }
}

function resultFields(result: RequestResult): readonly unknown[] {
  return [result.status, result.code, result.detail, Object.entries(result.headers).flat()];
}

function encodeFrame(frame: Frame): Uint8Array<ArrayBuffer> {
  const streams: string[] = [];
  const indexes = new Map<string, number>();
  const requests: (readonly unknown[])[] = [];
  let recordsBytes = 0;
  for (const request of frame.requests) {
    let index = indexes.get(request.stream);
    if (index === undefined) {
      index = streams.push(request.stream) - 1;
      indexes.set(request.stream, index);
    }
    requests.push(requestFields(request, index));
    for (const record of request.records) {
      recordsBytes += 4 + record.length;
    }
  }
  if ((frame.flags & frameFlag.void) !== 0) {
    streams.push(frame.voidReason);
  }
  const { flags, buffer, epoch, boot, fsn } = frame;
  const header = encoder.encodeSharedRef([
    frameVersion,
    flags,
    buffer,
    epoch,
    boot,
    fsn,
    streams,
    requests,
  ]);
  const out = newMessage(4 + header.length + recordsBytes, frameBytesMaxOf(flags));
  putU32(out, prefixBytes, header.length);
  out.set(header, prefixBytes + 4);
  putRecords(out, prefixBytes + 4 + header.length, frame.requests);
  return sealed(out, messageType.frame);
}

function requestFields(request: FrameRequest, index: number): readonly unknown[] {
  const { records, flags, acceptedAt, contentType, producer, streamSeq } = request;
  return producer === null
    ? [index, records.length, flags, acceptedAt, contentType, null, 0, 0, streamSeq]
    : [
        index,
        records.length,
        flags,
        acceptedAt,
        contentType,
        producer.id,
        producer.epoch,
        producer.seq,
        streamSeq,
      ];
}

function putRecords(out: Uint8Array, start: number, requests: readonly FrameRequest[]): void {
  let at = start;
  for (const request of requests) {
    for (const record of request.records) {
      putU32(out, at, record.length);
      out.set(record, at + 4);
      at += 4 + record.length;
    }
  }
}

function newMessage(bodyBytes: number, bytesMax: number): Uint8Array<ArrayBuffer> {
  const bytes = prefixBytes + bodyBytes;
  if (bytes > bytesMax) {
    throw new ForebayError(
      "frame_too_large",
      `the frame would have ${bytes} bytes, the limit is ${bytesMax}`,
    );
  }
  return new Uint8Array(bytes);
}

function sealed(out: Uint8Array<ArrayBuffer>, type: number): Uint8Array<ArrayBuffer> {
  out[8] = type;
  putU32(out, 0, out.length - 4);
  putU32(out, 4, crc32c(out.subarray(8)));
  return out;
}

function putU32(out: Uint8Array, at: number, value: number): void {
  out[at] = value;
  out[at + 1] = value >>> 8;
  out[at + 2] = value >>> 16;
  out[at + 3] = value >>> 24;
}
