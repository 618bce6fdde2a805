import { ForebayError } from "../../shared/errors/mod.ts";
import { parseOffset } from "../../shared/protocol/mod.ts";
import type { Target } from "../front/mod.ts";

export type Live = "long-poll" | "sse" | null;

/** What a GET asks for (Durable Streams §5.6–5.8). */
export interface ReadQuery {
  readonly live: Live;
  /** "-1" is the start, "now" the durable tail; otherwise a well-formed offset. */
  readonly offset: string;
  readonly cursor: string | null;
}

/** @throws ForebayError `bad_query` | `bad_offset` */
export function parseReadQuery(target: Target): ReadQuery {
  const live = target.one("live");
  const offset = target.one("offset");
  const cursor = target.one("cursor");
  if (live !== null && live !== "long-poll" && live !== "sse") {
    const message = `live=${JSON.stringify(live.slice(0, 64))} is not known; use long-poll or sse`;
    throw new ForebayError("bad_query", message);
  }
  if (live !== null && offset === null) {
    throw new ForebayError(
      "bad_query",
      `live=${live} needs an offset (-1 is the start, now the tail)`,
    );
  }
  if (offset !== null && offset !== "-1" && offset !== "now" && parseOffset(offset) === undefined) {
    const message = `offset=${JSON.stringify(offset.slice(0, 64))} is not an offset; use one a server gave, -1 or now`;
    throw new ForebayError("bad_offset", message);
  }
  return { live, offset: offset ?? "-1", cursor };
}
