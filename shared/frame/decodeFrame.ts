import { ForebayError } from "../errors/mod.ts";
import { badFrame, MessagePackReader } from "./reader.ts";
import { frameBytesMaxOf, prefixBytes } from "./size.ts";
import {
  frameFlag,
  requestFlag,
  type Frame,
  type FrameRequest,
  type ProducerTag,
} from "./types.ts";

/** A request whose records, `count` of them, are still to be taken. */
interface OpenRequest {
  readonly count: number;
  readonly request: FrameRequest;
  readonly records: Uint8Array[];
}

/** The frame of the FRAME message at `body[start..end)`, its CRC already checked. */
export function decodeFrame(body: Uint8Array, start: number, end: number): Frame {
  const view = new DataView(body.buffer, body.byteOffset, end);
  const headerStart = start + prefixBytes + 4;
  if (headerStart > end) {
    throw badFrame(`the frame at byte ${start} has no header`);
  }
  const headerBytes = view.getUint32(headerStart - 4, true);
  if (headerBytes > end - headerStart) {
    throw badFrame(`the header says it has ${headerBytes} bytes, there are ${end - headerStart}`);
  }
  const reader = new MessagePackReader(body, headerStart, headerStart + headerBytes);
  const { streams, open, ...fields } = decodeHeader(reader);
  checkSize(end - start, fields.flags);
  takeRecords(body, view, reader.end, open);
  const voidReason = (fields.flags & frameFlag.void) === 0 ? "" : (streams[0] ?? "");
  const frame: Frame = { ...fields, voidReason, requests: open.map((each) => each.request) };
  checkShape(frame, streams.length);
  return frame;
}

interface Header extends Omit<Frame, "voidReason" | "requests"> {
  readonly streams: readonly string[];
  readonly open: readonly OpenRequest[];
}

function decodeHeader(r: MessagePackReader): Header {
  r.tuple(8, "a frame header");
  r.version();
  const flags = r.uint();
  const buffer = r.string();
  const epoch = r.string();
  const boot = r.uint();
  const fsn = r.uint();
  const streams: string[] = [];
  for (let left = r.array(); left > 0; left--) {
    streams.push(r.string());
  }
  const open: OpenRequest[] = [];
  for (let left = r.array(); left > 0; left--) {
    open.push(decodeRequest(r, streams));
  }
  r.finish("a frame header");
  return { flags, buffer, epoch, boot, fsn, streams, open };
}

function decodeRequest(r: MessagePackReader, streams: readonly string[]): OpenRequest {
  r.tuple(9, "a request");
  const index = r.uint();
  const stream = streams[index];
  if (stream === undefined) {
    throw badFrame(`a request names stream ${index} of ${streams.length}`);
  }
  const count = r.uint();
  const flags = r.uint();
  if (flags > (requestFlag.create | requestFlag.json)) {
    throw badFrame(`a request has unknown flags: ${flags}`);
  }
  if (count !== 1 && (count === 0 || (flags & requestFlag.json) === 0)) {
    throw badFrame(`a request of flags ${flags} says it has ${count} records`);
  }
  const acceptedAt = r.uint();
  const contentType = r.stringOrNil();
  const producer = decodeProducer(r);
  const streamSeq = r.stringOrNil();
  const records: Uint8Array[] = [];
  return {
    count,
    records,
    request: { stream, flags, acceptedAt, contentType, producer, streamSeq, records },
  };
}

function decodeProducer(r: MessagePackReader): ProducerTag | null {
  const id = r.stringOrNil();
  const epoch = r.uint();
  const seq = r.uint();
  if (id !== null) {
    return { id, epoch, seq };
  }
  if (epoch !== 0 || seq !== 0) {
    throw badFrame(`a request without a producer has epoch ${epoch} and seq ${seq}`);
  }
  return null;
}

function takeRecords(
  body: Uint8Array,
  view: DataView,
  start: number,
  open: readonly OpenRequest[],
): void {
  const end = view.byteLength;
  let at = start;
  for (const { count, records } of open) {
    for (let left = count; left > 0; left--) {
      const next = at + 4 <= end ? at + 4 + view.getUint32(at, true) : Infinity;
      if (next > end) {
        throw badFrame(`the record at byte ${at} goes beyond the frame's end at ${end}`);
      }
      records.push(body.subarray(at + 4, next));
      at = next;
    }
  }
  if (at !== end) {
    throw badFrame(`${end - at} bytes are left over after the last record`);
  }
}

function checkSize(bytes: number, flags: number): void {
  const bytesMax = frameBytesMaxOf(flags);
  if (bytes > bytesMax) {
    throw new ForebayError(
      "frame_too_large",
      `the frame has ${bytes} bytes, the limit is ${bytesMax}`,
    );
  }
}

/** A frame is direct, void or one of records; each says which fields stand and which are empty. */
function checkShape(frame: Frame, streams: number): void {
  const { flags, buffer, epoch, boot, fsn, requests } = frame;
  const named = buffer !== "" && epoch !== "" && fsn > 0;
  switch (flags) {
    case 0:
      if (!named || requests.length === 0) {
        throw badFrame(`a frame of "${buffer}" FSN ${fsn} with ${requests.length} requests`);
      }
      return;
    case frameFlag.direct:
      if (buffer !== "" || epoch !== "" || boot !== 0 || fsn !== 0 || requests.length === 0) {
        throw badFrame(`a direct frame of "${buffer}" FSN ${fsn} with ${requests.length} requests`);
      }
      return;
    case frameFlag.void:
      if (!named || requests.length !== 0 || streams !== 1) {
        throw badFrame(`a void frame of "${buffer}" FSN ${fsn} with ${requests.length} requests`);
      }
      return;
    default:
      throw badFrame(`a frame has unknown flags: ${flags}`);
  }
}
