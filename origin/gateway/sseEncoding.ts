import { header } from "../../shared/protocol/mod.ts";
import type { ReadBatch } from "../stream/mod.ts";
import { joinRecords } from "./records.ts";

/*
 * Server-sent events, the writing half. Not a library's: Hono's streamSSE makes a promise and an encoded string
 * per event and per reader, whereas here one buffer is built per advance of a stream and written to all of its
 * readers as it is.
 *
 *   event: data                   one for all records of a read (P3)
 *   data:<payload line>           one per line of the payload, so that no payload can forge an event
 *
 *   event: control                after every data event (Durable Streams §5.8)
 *   data:{"streamNextOffset":…}
 */

/** How a stream's records are put into `data:` lines. */
export interface SseFormat {
  readonly json: boolean;
  /** Anything that is not text (`Stream-SSE-Data-Encoding: base64`). */
  readonly base64: boolean;
}

/** The bytes of one read for however many readers. */
export class SseChunk {
  readonly start: string;
  readonly next: string;
  readonly upToDate: boolean;
  readonly closed: boolean;
  /** Latin-1: one character per byte, so text of any encoding passes through untouched. */
  readonly #data: string;
  #cursor: string | null = null;
  #bytes: Buffer = Buffer.alloc(0);

  constructor(batch: ReadBatch, format: SseFormat) {
    this.start = batch.start;
    this.next = batch.next;
    this.upToDate = batch.upToDate;
    this.closed = batch.closed;
    this.#data = batch.records.length === 0 ? "" : dataEvent(batch.records, format);
  }

  /** The chunk for readers whose cursor is `cursor`; nearly all share one, so the last is kept. */
  bytesFor(cursor: string): Buffer {
    if (cursor !== this.#cursor) {
      this.#bytes = Buffer.from(this.#data + controlEvent(this, cursor), "latin1");
      this.#cursor = cursor;
    }
    return this.#bytes;
  }
}

function dataEvent(records: readonly Uint8Array[], format: SseFormat): string {
  const joined = joinRecords(records, format.json);
  const payload = joined.toString(format.base64 ? "base64" : "latin1");
  const lines = format.base64 ? payload : payload.replace(/\r\n|\r|\n/g, "\ndata:");
  return `event: data\ndata:${lines}\n\n`;
}

function controlEvent(chunk: SseChunk, cursor: string): string {
  const control = chunk.closed
    ? { streamNextOffset: chunk.next, streamClosed: true }
    : {
        streamNextOffset: chunk.next,
        streamCursor: cursor,
        ...(chunk.upToDate ? { upToDate: true } : {}),
      };
  return `event: control\ndata:${JSON.stringify(control)}\n\n`;
}

/** Header fields of an SSE answer besides the common ones. */
export function sseHeaders(format: SseFormat): string[] {
  const headers = ["content-type", "text/event-stream", "cache-control", "no-cache"];
  if (format.base64) {
    headers.push(header.sseDataEncoding, "base64");
  }
  return headers;
}
