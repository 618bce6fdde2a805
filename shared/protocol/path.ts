import { ForebayError } from "../errors/mod.ts";
import { limits } from "../limits.ts";
import { utf8Bytes, utf8Text } from "../utf8/mod.ts";

/** `pchar` of RFC 3986 without percent-encoding: what a canonical path spells as itself. */
const literal: readonly boolean[] = Array.from({ length: 128 }, (_, code) =>
  /[A-Za-z0-9\-._~!$&'()*+,;=:@]/.test(String.fromCharCode(code)),
);

const slash = 0x2f;
const percent = 0x25;

/**
 * The one key of a stream: its path in canonical ASCII (segments of RFC 3986 `pchar` joined by single slashes).
 * Applied once, to the raw request target, before authentication and routing, alike at edge and origin; applied
 * again it changes nothing.
 *
 * Percent-encoding is decoded once and spelled anew (`%61` is `a`, `%2f` is a slash like any other, so that a proxy
 * that decodes it changes nothing; a space stays `%20`; hex digits are upper-case). Unicode is not normalised, case
 * is kept. Refused, not repaired, because intermediaries repair them differently: empty segments (a doubled,
 * leading or trailing slash), `.` and `..` (encoded too), backslashes, control characters, NUL, invalid
 * percent-encoding or UTF-8, raw bytes above ASCII, `?` and `#` unless encoded.
 *
 * @param rawPath what follows the route's prefix, undecoded, without the query
 * @throws ForebayError `bad_path`
 * @example normalizeStreamPath("devices/%61b%20c") // "devices/ab%20c"
 */
export function normalizeStreamPath(rawPath: string): string {
  const path = isPlain(rawPath) ? rawPath : respelled(rawPath);
  const dotSegment = /(?:^|\/)\.{1,2}(?:\/|$)/.exec(path);
  if (dotSegment !== null) {
    throw badPath(rawPath, "a dot segment");
  }
  if (path.length > limits.streamPathBytesMax) {
    throw badPath(rawPath, `${path.length} bytes, the limit is ${limits.streamPathBytesMax}`);
  }
  return path;
}

/**
 * `_forebay/…` is written by Forebay alone: the quarantine and what else it keeps as streams. `__ds/…` are the
 * protocol's own requests, not streams.
 */
export function isReservedPath(path: string): boolean {
  return /^(?:_forebay|__ds)(?:\/|$)/.test(path);
}

function badPath(rawPath: string, found: string): ForebayError {
  return new ForebayError(
    "bad_path",
    `the stream path ${JSON.stringify(rawPath.slice(0, 200))} has ${found}`,
  );
}

/** True when every character spells itself and no segment is empty: nearly every path. */
function isPlain(path: string): boolean {
  let before = slash;
  for (let i = 0; i < path.length; i++) {
    const code = path.charCodeAt(i);
    if (code === slash ? before === slash : literal[code] !== true) {
      return false;
    }
    before = code;
  }
  return before !== slash;
}

function respelled(rawPath: string): string {
  const text = utf8Text(percentDecoded(rawPath));
  if (text === undefined) {
    throw badPath(rawPath, "bytes that are not valid UTF-8");
  }
  const control = /[\p{Cc}\\]/u.exec(text);
  if (control !== null) {
    throw badPath(rawPath, control[0] === "\\" ? "a backslash" : "a control character");
  }
  const segments = text.split("/");
  if (segments.includes("")) {
    throw badPath(rawPath, "an empty segment");
  }
  return segments.map(spelled).join("/");
}

function percentDecoded(rawPath: string): Uint8Array {
  const bytes = new Uint8Array(rawPath.length);
  let length = 0;
  for (let i = 0; i < rawPath.length; i++) {
    let code = rawPath.charCodeAt(i);
    if (code === percent) {
      const hex = rawPath.slice(i + 1, i + 3);
      if (!/^[0-9A-Fa-f]{2}$/.test(hex)) {
        throw badPath(rawPath, `invalid percent-encoding: ${JSON.stringify(`%${hex}`)}`);
      }
      code = Number.parseInt(hex, 16);
      i += 2;
    } else if (code > 0x7e || rawPath[i] === "?" || rawPath[i] === "#") {
      throw badPath(
        rawPath,
        `a character that must be percent-encoded: ${JSON.stringify(rawPath[i])}`,
      );
    }
    bytes[length++] = code;
  }
  return bytes.subarray(0, length);
}

function spelled(segment: string): string {
  let out = "";
  for (const byte of utf8Bytes(segment)) {
    out +=
      literal[byte] === true
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return out;
}
