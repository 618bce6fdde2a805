import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import {
  formatEtag,
  formatOffset,
  header,
  ifNoneMatch,
  normalizeStreamPath,
  parseOffset,
  responseCursor,
  streamPrefix,
} from "../../shared/protocol/mod.ts";
import type { ReadBatch, StreamMeta, Verdict } from "../stream/mod.ts";
import { cacheControl } from "./caching.ts";
import type { Exchange } from "./exchange.ts";
import { durable } from "./gate.ts";
import { loaded } from "./loaded.ts";
import { LongPoll } from "./longPoll.ts";
import { parseReadQuery, type ReadQuery } from "./readQuery.ts";
import { joinRecords } from "./records.ts";
import { verdictReply, type Reply } from "./reply.ts";
import { SseResponse } from "./sse.ts";

/** A GET's answer, or word that it is already being written. */
export type ReadAnswer = Reply | typeof RESPONSE_ALREADY_SENT;

/** What a read starts from. */
interface Start {
  readonly path: string;
  readonly meta: StreamMeta;
  readonly query: ReadQuery;
}

/** The first events of SSE are a small piece, like all that follow. */
const ssePieceBytesMax = 256 * 1024;

/**
 * `GET /v1/stream/<path>`: catch-up, long-poll or SSE. Records are durable when they are read; the stream they are
 * of, or its absence, may not be yet, so every answer waits for what it was judged by (DESIGN, output gate).
 */
export async function readStream(exchange: Exchange): Promise<ReadAnswer> {
  const { context, target } = exchange;
  const path = normalizeStreamPath(target.path.slice(streamPrefix.length));
  const query = parseReadQuery(target);
  const { live } = query;
  exchange.route = live === null ? "read" : live === "sse" ? "sse" : "long_poll";
  const meta = context.streams.meta(path);
  if ("status" in meta) {
    return refusal(exchange, meta);
  }
  const maxBytes = live === "sse" ? ssePieceBytesMax : context.settings.readBytesMax;
  const options = { maxBytes, touch: true, id: meta.id };
  const batch = await loaded(() => context.streams.read(path, query.offset, options));
  if ("status" in batch) {
    return refusal(exchange, batch);
  }
  const start: Start = { path, meta, query };
  switch (live) {
    case "sse": {
      const sse = new SseResponse(exchange, { ...start, batch });
      await durable(context.streams, batch.lsn);
      sse.begin();
      return RESPONSE_ALREADY_SENT;
    }
    case "long-poll":
      return pollReply(exchange, start, batch);
    case null: {
      const reply =
        query.offset === "now" ? tailReply(meta, batch) : catchUpReply(exchange, meta, batch);
      await durable(context.streams, batch.lsn);
      return reply;
    }
  }
}

async function refusal(exchange: Exchange, verdict: Verdict): Promise<Reply> {
  await durable(exchange.context.streams, verdict.lsn);
  return verdictReply(verdict, null);
}

/**
 * `HEAD /v1/stream/<path>`: the newest state, once it is durable. Does not count as use of the stream (P4). Its ETag is
 * that of a GET from the start; a stream too long for one answer has none here (RFC 9110 §9.3.2: a field that takes
 * generating the content may be left out), since only reading tells where that answer ends.
 */
export async function headStream(exchange: Exchange): Promise<Reply> {
  const { context, target } = exchange;
  exchange.route = "head";
  const path = normalizeStreamPath(target.path.slice(streamPrefix.length));
  const meta = context.streams.meta(path);
  if ("status" in meta) {
    return refusal(exchange, meta);
  }
  await durable(context.streams, meta.lsn);
  const headers = ["content-type", meta.contentType, "cache-control", "no-store"];
  headers.push(header.nextOffset, meta.tail);
  if ((parseOffset(meta.tail)?.byte ?? 0) <= context.settings.readBytesMax) {
    headers.push("etag", wholeEtag(meta));
  }
  if (meta.closed) {
    headers.push(header.closed, "true");
  }
  if (meta.ttlSeconds !== null) {
    headers.push(header.ttl, String(meta.ttlSeconds));
  }
  if (meta.expiresAt !== null) {
    headers.push(header.expiresAt, meta.expiresAt);
  }
  return { status: 200, headers, body: null };
}

function wholeEtag({ id, tail, closed }: StreamMeta): string {
  return formatEtag({ streamId: id, start: formatOffset(0, 0), end: tail, closed });
}

/** `offset=now`: nothing but where the tail is. */
function tailReply(meta: StreamMeta, batch: ReadBatch): Reply {
  const headers = ["content-type", meta.contentType, "cache-control", "no-store"];
  headers.push(header.nextOffset, batch.next, header.upToDate, "true");
  if (batch.closed) {
    headers.push(header.closed, "true");
  }
  return { status: 200, headers, body: meta.json ? "[]" : null };
}

function catchUpReply(exchange: Exchange, meta: StreamMeta, batch: ReadBatch): Reply {
  const { start, next: end, closed } = batch;
  const etag = formatEtag({ streamId: meta.id, start, end, closed });
  const headers = ["etag", etag, "cache-control", cacheControl(exchange, meta, batch)];
  headers.push(...position(batch));
  const condition = exchange.head.get("if-none-match");
  if (condition !== null && ifNoneMatch(condition, etag)) {
    return { status: 304, headers, body: null };
  }
  return recordsReply(exchange, meta, batch, headers);
}

async function pollReply(exchange: Exchange, start: Start, first: ReadBatch): Promise<Reply> {
  const { context } = exchange;
  let batch = first;
  if (first.records.length === 0 && !first.closed) {
    const outcome = await new LongPoll(exchange, start.path, first).answer();
    if ("status" in outcome) {
      return refusal(exchange, outcome);
    }
    batch = outcome;
  }
  const cursor = responseCursor(start.query.cursor, context.clock.now(), context.random.next());
  const headers = ["cache-control", "no-store", header.cursor, cursor, ...position(batch)];
  const reply =
    batch.records.length === 0
      ? { status: 204, headers, body: null }
      : recordsReply(exchange, start.meta, batch, headers);
  await durable(context.streams, batch.lsn);
  return reply;
}

function position(batch: ReadBatch): string[] {
  const headers = [header.nextOffset, batch.next];
  if (batch.upToDate) {
    headers.push(header.upToDate, "true");
  }
  if (batch.closed) {
    headers.push(header.closed, "true");
  }
  return headers;
}

function recordsReply(
  exchange: Exchange,
  meta: StreamMeta,
  batch: ReadBatch,
  headers: string[],
): Reply {
  const body = joinRecords(batch.records, meta.json);
  exchange.context.counters.readBytesOut += body.length;
  headers.push("content-type", meta.contentType);
  return { status: 200, headers, body };
}
