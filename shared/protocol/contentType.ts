import { ForebayError } from "../errors/mod.ts";
import { limits } from "../limits.ts";

/** `type "/" subtype` of RFC 9110 §8.3.1, then the end or parameters. */
const shape = /^[\t ]*([!#$%&'*+.^_`|~0-9A-Za-z-]+\/[!#$%&'*+.^_`|~0-9A-Za-z-]+)[\t ]*(?:;|$)/;

/**
 * The lower-cased `type/subtype` without parameters. Two content types are the same to the protocol when their
 * media types are: case and parameters do not count.
 *
 * @throws ForebayError `bad_header` for anything that is not a media type, or a longer one than the limit
 */
export function mediaType(value: string): string {
  const m = value.length <= limits.contentTypeBytesMax ? shape.exec(value) : null;
  if (m?.[1] === undefined) {
    throw new ForebayError(
      "bad_header",
      `Content-Type ${JSON.stringify(value.slice(0, 64))} is not a media type of at most ${limits.contentTypeBytesMax} bytes`,
    );
  }
  return m[1].toLowerCase();
}

/** JSON mode of a stream (Durable Streams §9.1): its messages are JSON values. Any `+json` type is JSON (RFC 6839 §3.1). */
export function isJson(type: string): boolean {
  return type === "application/json" || type.endsWith("+json");
}

/** SSE carries these as text; every other type goes in base64 (Durable Streams §5.8). */
export function isTextual(type: string): boolean {
  return type.startsWith("text/") || isJson(type);
}
