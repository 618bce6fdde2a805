import { ForebayError } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import { parseDecimal } from "../../shared/protocol/mod.ts";
import type { Exchange } from "./exchange.ts";
import { durable } from "./gate.ts";
import { jsonReply, type Reply } from "./reply.ts";

const limitMax = 1000;
const limitDefault = 100;

/**
 * `GET /v1/streams?prefix=&after=&limit=`: streams in path order. `next` is the `after` of the next page, null at
 * the end.
 */
export async function listStreams(exchange: Exchange): Promise<Reply> {
  const { context, target } = exchange;
  exchange.route = "list";
  const prefix = pathPart(target.one("prefix"), "prefix");
  const after = pathPart(target.one("after"), "after");
  const limit = pageLimit(target.one("limit"));
  // One more than asked for tells whether there is a next page.
  const found = context.streams.list(prefix, after, limit + 1);
  const page = found.slice(0, limit);
  let newest = 0;
  const streams = page.map((stream) => {
    newest = Math.max(newest, stream.lsn);
    return {
      path: stream.path,
      contentType: stream.contentType,
      tail: stream.tail,
      closed: stream.closed,
      ttlSeconds: stream.ttlSeconds,
      expiresAt: stream.expiresAt,
    };
  });
  const last = page.find((stream) => stream.lsn === newest);
  if (last !== undefined) {
    await durable(context.streams, last.lsn);
  }
  const next = found.length > limit ? (page.at(-1)?.path ?? null) : null;
  return jsonReply(200, { streams, next });
}

function pathPart(text: string | null, name: string): string {
  if (text !== null && text.length > limits.streamPathBytesMax) {
    const message = `${name} has ${text.length} characters, at most ${limits.streamPathBytesMax} make a path`;
    throw new ForebayError("bad_query", message);
  }
  return text ?? "";
}

function pageLimit(text: string | null): number {
  const limit = text === null ? limitDefault : parseDecimal(text);
  if (limit === undefined || limit < 1 || limit > limitMax) {
    const message = `limit=${JSON.stringify(text?.slice(0, 64))} is not a number from 1 to ${limitMax}`;
    throw new ForebayError("bad_query", message);
  }
  return limit;
}
