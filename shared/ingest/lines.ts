import { ForebayError } from "../errors/mod.ts";
import { limits } from "../limits.ts";
import { checkCount } from "./json.ts";
import type { Accepted, Parsed, Refusal } from "./result.ts";
import { JsonScanner } from "./scanner.ts";

const newline = 0x0a;

const isSpace = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x09 || byte === 0x0d;

/**
 * NDJSON: one JSON value a line, each accepted or refused by itself. Lines end in LF or CRLF, blank ones do not count.
 *
 * @throws ForebayError `too_many_records`
 */
export function parseLines(body: Uint8Array): Parsed {
  const records: Accepted[] = [];
  const refused: Refusal[] = [];
  let index = 0;
  for (const line of textLines(body)) {
    checkCount(index + 1);
    const refusal = lineRefusal(line, index);
    if (refusal === null) {
      records.push({ index, bytes: line });
    } else {
      refused.push(refusal);
    }
    index++;
  }
  return { records, refused, received: index };
}

/** The lines that are not blank, each without the white space around it. */
export function* textLines(body: Uint8Array): Generator<Uint8Array> {
  let start = 0;
  for (;;) {
    while (isSpace(body[start]) || body[start] === newline) {
      start++;
    }
    if (start >= body.length) {
      return;
    }
    const found = body.indexOf(newline, start);
    const next = found === -1 ? body.length : found;
    let end = next;
    while (isSpace(body[end - 1])) {
      end--;
    }
    yield body.subarray(start, end);
    start = next;
  }
}

/** Why a JSON value on one line cannot be a record, or null when it can. */
export function lineRefusal(line: Uint8Array, index: number): Refusal | null {
  if (line.length > limits.recordBytesMax) {
    return tooLarge(line, index);
  }
  try {
    new JsonScanner(line).onlyValue();
    return null;
  } catch (error) {
    if (error instanceof ForebayError) {
      return { index, code: error.code, message: `record ${index}: ${error.message}` };
    }
    throw error;
  }
}

export function tooLarge(record: Uint8Array, index: number): Refusal {
  return {
    index,
    code: "record_too_large",
    message: `record ${index} has ${record.length} bytes, the limit is ${limits.recordBytesMax}`,
  };
}
