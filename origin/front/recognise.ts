import { limits } from "../../shared/limits.ts";
import { framesPath, isStreamTarget } from "../../shared/protocol/mod.ts";
import { Head } from "./head.ts";
import { isHost } from "./host.ts";
import { Target } from "./target.ts";

/** A request of the subset, as far as its head says. */
export interface Recognised {
  /** Request target in origin form, as sent. */
  readonly url: string;
  readonly head: Head;
  readonly target: Target;
  /** Request line and fields. */
  readonly text: string;
  /** Of the request line and the fields with the empty line after them. */
  readonly headBytes: number;
  readonly contentLength: number;
}

/**
 * The strict recogniser (DECISIONS.md): a subset of HTTP/1.1 (RFC 9112) which every parser reads the same way.
 *
 *     POST SP (/v1/stream/… | /v1/frames[?…]) SP HTTP/1.1 CRLF
 *     *( token ":" OWS *( HTAB | SP | VCHAR ) OWS CRLF )
 *     CRLF
 *
 * with one Host that names a host, one Content-Length of plain digits, each field the origin looks at at most once, and none of the
 * fields that change how a message is framed or answered. The target has only characters RFC 3986 allows.
 *
 * @param before the request before it on its connection: most clients send the same head again and again
 * @returns null for everything else, an incomplete head too: that is node:http's to read
 */
export function recognise(bytes: Buffer, before: Recognised | null): Recognised | null {
  if (bytes[0] !== letterP) {
    return null;
  }
  const emptyLine = bytes.indexOf(endOfHead);
  if (emptyLine === -1 || emptyLine > limits.urlBytesMax + limits.headerBytesMax) {
    return null;
  }
  const text = bytes.toString("latin1", 0, emptyLine + 2);
  if (before !== null && before.text === text) {
    return before;
  }
  const targetEnd = runOf(bytes, method.length, inTarget);
  const url = text.slice(method.length, targetEnd);
  if (!text.startsWith(method) || !text.startsWith(version, targetEnd) || !isHotTarget(url)) {
    return null;
  }
  const head = readFields(bytes, text, targetEnd + version.length);
  const contentLength = head?.get("content-length") ?? null;
  if (
    head === null ||
    head.duplicate !== null ||
    !isHost(head.get("host") ?? "") ||
    contentLength === null ||
    !plainLength.test(contentLength)
  ) {
    return null;
  }
  return {
    url,
    head,
    target: new Target(url),
    text,
    headBytes: emptyLine + 4,
    contentLength: Number(contentLength),
  };
}

const method = "POST ";
const version = " HTTP/1.1\r\n";
const endOfHead = Buffer.from("\r\n\r\n");
const letterP = 0x50;
const [tab, space, colon] = [0x09, 0x20, 0x3a];
const plainLength = /^(?:0|[1-9]\d{0,8})$/;

/** They frame the message differently, or ask for an answer that a plain one is not. */
const otherwise: ReadonlySet<string> = new Set([
  "transfer-encoding",
  "content-encoding",
  "expect",
  "upgrade",
  "te",
  "trailer",
  "proxy-connection",
  "http2-settings",
]);

const inToken = 1;
const inValue = 2;
const inTarget = 4;
/** What a byte may be part of. */
const kinds = new Uint8Array(256);
for (const c of "!#$%&'*+-.^_`|~") {
  kinds[c.charCodeAt(0)] = inToken;
}
for (const c of "-._~:/?@!$&'()*+,;=%") {
  kinds[c.charCodeAt(0)] = (kinds[c.charCodeAt(0)] ?? 0) | inTarget;
}
for (const c of "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") {
  kinds[c.charCodeAt(0)] = inToken | inTarget;
}
for (let c = space; c < 0x7f; c++) {
  kinds[c] = (kinds[c] ?? 0) | inValue;
}
kinds[tab] = inValue;

/** Where the run of bytes of one kind that starts at `from` ends. */
function runOf(bytes: Uint8Array, from: number, kind: number): number {
  let at = from;
  // Past the end there is no byte, and no kind.
  while (((kinds[bytes[at] as number] as number) & kind) !== 0) {
    at++;
  }
  return at;
}

/** Whether a POST to this target is an append or frames: what the recogniser is for. */
export function isHotTarget(url: string): boolean {
  return isStreamTarget(url) || url === framesPath || url.startsWith(`${framesPath}?`);
}

/** `text` ends with the last field's line end. Null when these are not fields of the subset. */
function readFields(bytes: Uint8Array, text: string, from: number): Head | null {
  const head = new Head();
  let at = from;
  while (at < text.length) {
    const nameEnd = runOf(bytes, at, inToken);
    const valueEnd = runOf(bytes, nameEnd + 1, inValue);
    if (nameEnd === at || bytes[nameEnd] !== colon || !text.startsWith("\r\n", valueEnd)) {
      return null;
    }
    const name = text.slice(at, nameEnd).toLowerCase();
    const value = withoutBlanks(bytes, text, nameEnd + 1, valueEnd);
    if (otherwise.has(name) || (name === "connection" && value.toLowerCase() !== "keep-alive")) {
      return null;
    }
    head.add(name, value);
    at = valueEnd + 2;
  }
  return head;
}

function withoutBlanks(bytes: Uint8Array, text: string, from: number, to: number): string {
  let start = from;
  let end = to;
  while (start < end && isBlank(bytes[start])) {
    start++;
  }
  while (end > start && isBlank(bytes[end - 1])) {
    end--;
  }
  return text.slice(start, end);
}

function isBlank(byte: number | undefined): boolean {
  return byte === space || byte === tab;
}
