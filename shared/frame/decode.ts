import { crc32c } from "../crc/mod.ts";
import { catalogue, ForebayError, type ErrorCode } from "../errors/mod.ts";
import { decodeFrame } from "./decodeFrame.ts";
import { badFrame, MessagePackReader } from "./reader.ts";
import { messageBytesMax, prefixBytes } from "./size.ts";
import { messageType, type LinkMessage, type Nack, type RequestResult } from "./types.ts";

/**
 * All messages of a body, at least one. Records of a decoded frame are views of `body`, not copies.
 *
 * @throws ForebayError `bad_frame` for anything malformed, `frame_too_large` for a length above the limits;
 *   never anything else
 */
export function decodeMessages(body: Uint8Array): LinkMessage[] {
  if (body.length === 0) {
    throw badFrame("the body holds no message");
  }
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  const messages: LinkMessage[] = [];
  let start = 0;
  while (start < body.length) {
    const end = messageEnd(view, start);
    const crc = crc32c(body.subarray(start + 8, end));
    if (crc !== view.getUint32(start + 4, true)) {
      throw badFrame(`the CRC of the message at byte ${start} does not match`);
    }
    messages.push(decodeBody(body, start, end));
    start = end;
  }
  return messages;
}

function messageEnd(view: DataView, start: number): number {
  const left = view.byteLength - start;
  if (left < prefixBytes) {
    throw badFrame(`the message at byte ${start} is cut off after ${left} bytes`);
  }
  const bytes = 4 + view.getUint32(start, true);
  if (bytes > messageBytesMax) {
    throw new ForebayError(
      "frame_too_large",
      `the message at byte ${start} says it has ${bytes} bytes, the limit is ${messageBytesMax}`,
    );
  }
  if (bytes < prefixBytes || bytes > left) {
    throw badFrame(`the message at byte ${start} says it has ${bytes} bytes, there are ${left}`);
  }
  return start + bytes;
}

function decodeBody(body: Uint8Array, start: number, end: number): LinkMessage {
  const type = body[start + 8];
  if (type === messageType.frame) {
    return { type: "frame", frame: decodeFrame(body, start, end) };
  }
  const reader = new MessagePackReader(body, start + prefixBytes, end);
  const message = decodeControl(type, reader);
  reader.finish(message.type.toUpperCase());
  return message;
}

function decodeControl(type: number | undefined, r: MessagePackReader): LinkMessage {
  switch (type) {
    case messageType.hello:
      r.tuple(5, "HELLO");
      r.version();
      return {
        type: "hello",
        hello: { buffer: r.string(), epoch: r.string(), boot: r.uint(), highestFsn: r.uint() },
      };
    case messageType.welcome:
      r.tuple(5, "WELCOME");
      r.version();
      return {
        type: "welcome",
        welcome: {
          journalId: r.string(),
          buffer: r.string(),
          durableFsn: r.uint(),
          latestBoot: r.uint(),
        },
      };
    case messageType.ack:
      r.tuple(5, "ACK");
      return {
        type: "ack",
        ack: {
          buffer: r.string(),
          epoch: r.string(),
          received: r.uint(),
          durable: r.uint(),
          replicated: r.uint(),
        },
      };
    case messageType.nack:
      return { type: "nack", nack: decodeNack(r) };
    case messageType.results:
      return { type: "results", results: decodeResults(r) };
    case messageType.credit:
      r.tuple(2, "CREDIT");
      return { type: "credit", credit: { buffer: r.string(), bytes: r.uint() } };
    default:
      throw badFrame(`the message type ${type} is unknown`);
  }
}

const knownCode = (code: string): code is ErrorCode => Object.hasOwn(catalogue, code);

/** A code of a newer origin is no reason to give a frame up: it reads as a retriable `internal`. */
function decodeNack(r: MessagePackReader): Nack {
  r.tuple(7, "NACK");
  const buffer = r.string();
  const epoch = r.string();
  const fsn = r.uint();
  const code = r.string();
  const retryable = r.bool();
  const expectedFsn = r.uint();
  const message = r.string();
  return knownCode(code)
    ? { buffer, epoch, fsn, code, retryable, expectedFsn, message }
    : {
        buffer,
        epoch,
        fsn,
        code: "internal",
        retryable: true,
        expectedFsn,
        message: `${code}: ${message}`,
      };
}

function decodeResults(r: MessagePackReader): RequestResult[] {
  const results: RequestResult[] = [];
  for (let left = r.array(); left > 0; left--) {
    r.tuple(4, "a result");
    const status = r.uint();
    const code = r.stringOrNil();
    const detail = r.stringOrNil();
    const headers = decodeHeaders(r);
    results.push({
      status,
      code: code === null || knownCode(code) ? code : "internal",
      detail,
      headers,
    });
  }
  return results;
}

function decodeHeaders(r: MessagePackReader): Record<string, string> {
  const length = r.array();
  if (length % 2 !== 0) {
    throw badFrame(`the header list of a result has ${length} elements, an odd number`);
  }
  const fields: [string, string][] = [];
  for (let left = length; left > 0; left -= 2) {
    fields.push([r.string(), r.string()]);
  }
  return Object.fromEntries(fields);
}
