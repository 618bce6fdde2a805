import { STATUS_CODES } from "node:http";
import {
  ForebayError,
  invariant,
  problemContentType,
  problemJson,
  type ErrorCode,
} from "../../shared/errors/mod.ts";
import { securityHeaders } from "../../shared/protocol/mod.ts";

const unfit = /[^\t\x20-\x7e\x80-\xff]/;

/** In latin1 (RFC 9112 §4). */
export const statusLine = (status: number): string =>
  `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n`;

/**
 * Fields of an answer, each with its line end, in latin1 (RFC 9112 §5).
 *
 * @param headers flat: name, value, name, value …
 */
export function fieldLines(headers: readonly string[]): string {
  let text = "";
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const value = headers[i + 1] as string;
    invariant(!unfit.test(value), "a header value has only characters a header may have");
    text += `${headers[i] as string}: ${value}\r\n`;
  }
  return text;
}

/** A whole answer that ends its connection, for what is refused before there is a request to answer. */
export function refusal(
  code: ErrorCode,
  detail: string,
  more: Readonly<Record<string, string>> = {},
): string {
  const body = problemJson(code, detail);
  const { status } = new ForebayError(code, detail);
  const headers = Object.entries({ ...securityHeaders, ...more }).flat();
  headers.push("content-type", problemContentType);
  headers.push("content-length", String(Buffer.byteLength(body)));
  headers.push("connection", "close");
  return `${statusLine(status)}${fieldLines(headers)}\r\n${body}`;
}
