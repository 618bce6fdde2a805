import { limits } from "../../shared/limits.ts";
import { parseExpiresAt } from "../../shared/protocol/mod.ts";
import type { ReadBatch, StreamMeta } from "../stream/mod.ts";
import type { Exchange } from "./exchange.ts";

/**
 * Cache-Control of a catch-up answer. At the tail a cache has to ask each time. Whatever ends before the tail, or at
 * the end of a closed stream, never changes while the stream lives (a *closed range*), and is kept as long as the
 * stream's lifetime allows: until Expires-At; for an eighth of a sliding TTL, because the stream lives by being read.
 * What was asked for without an offset is kept for a minute: it is where readers of a path's next life begin.
 *
 * An answer to a request with a key is for that reader alone.
 */
export function cacheControl(exchange: Exchange, meta: StreamMeta, batch: ReadBatch): string {
  const { context, head, target } = exchange;
  const keyed = head.get("authorization") !== null || target.one("key") !== null;
  const offset = target.one("offset");
  const fromStart = offset === null || offset === "-1";
  const seconds =
    batch.upToDate && !batch.closed
      ? 0
      : Math.min(
          fromStart ? limits.startCacheSecondsMax : limits.rangeCacheSecondsMax,
          secondsLeft(meta, context.clock.now()),
        );
  if (seconds === 0) {
    return keyed ? "private, no-cache" : "no-cache";
  }
  return `${keyed ? "private" : "public"}, max-age=${seconds}`;
}

function secondsLeft({ ttlSeconds, expiresAt }: StreamMeta, now: number): number {
  if (ttlSeconds !== null) {
    return Math.floor(ttlSeconds / 8);
  }
  return expiresAt === null
    ? Number.POSITIVE_INFINITY
    : Math.max(0, Math.floor((parseExpiresAt(expiresAt).ms - now) / 1000));
}
