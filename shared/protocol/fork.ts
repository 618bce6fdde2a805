import { ForebayError } from "../errors/mod.ts";
import { header, streamPrefix } from "./headers.ts";
import { parseDecimal } from "./integer.ts";
import { parseOffset } from "./offset.ts";
import { normalizeStreamPath } from "./path.ts";

/** The fork fields of a PUT as sent, null where absent. */
export interface ForkFields {
  readonly from: string | null;
  readonly offset: string | null;
  readonly subOffset: string | null;
}

/** Where a stream is to begin: in another one. */
export interface ForkPoint {
  /** Path of the source, normalised. */
  readonly from: string;
  /** A well-formed offset, or null for the source's tail. */
  readonly offset: string | null;
  readonly subOffset: number;
}

/**
 * `Stream-Forked-From`, `Stream-Fork-Offset` and `Stream-Fork-Sub-Offset` (Durable Streams §4.2). The source is named
 * by the path of its URL on the same server, spelled as any request for it may spell it.
 *
 * @returns null when no field is there
 * @throws ForebayError `bad_header` | `bad_offset` | `bad_path`
 */
export function parseFork({ from, offset, subOffset }: ForkFields): ForkPoint | null {
  if (from === null) {
    if (offset !== null || subOffset !== null) {
      const name = offset === null ? header.forkSubOffset : header.forkOffset;
      throw new ForebayError("bad_header", `${name} needs ${header.forkedFrom} beside it`);
    }
    return null;
  }
  if (!from.startsWith(streamPrefix)) {
    const message = `${header.forkedFrom} is ${JSON.stringify(from.slice(0, 200))}, not the path of a stream below ${streamPrefix}`;
    throw new ForebayError("bad_header", message);
  }
  if (offset !== null && parseOffset(offset) === undefined) {
    const message = `${header.forkOffset} is ${JSON.stringify(offset.slice(0, 64))}, not an offset; use one a server gave`;
    throw new ForebayError("bad_offset", message);
  }
  const past = subOffset === null ? 0 : parseDecimal(subOffset);
  if (past === undefined) {
    const message = `${header.forkSubOffset} is ${JSON.stringify(subOffset?.slice(0, 64))}, not a number from 0 to 2^53 - 1`;
    throw new ForebayError("bad_header", message);
  }
  return { from: normalizeStreamPath(from.slice(streamPrefix.length)), offset, subOffset: past };
}
