import { ForebayError } from "../errors/mod.ts";
import { limits } from "../limits.ts";
import { mediaType } from "../protocol/mod.ts";
import { splitJson } from "./json.ts";
import { lineRefusal, parseLines, textLines, tooLarge } from "./lines.ts";
import type { Accepted, Parsed, Refusal } from "./result.ts";

const parsers: ReadonlyMap<string, (body: Uint8Array) => Parsed> = new Map([
  ["application/json", parseJson],
  ["application/x-ndjson", parseLines],
  ["application/ndjson", parseLines],
  ["application/jsonl", parseLines],
  ["text/plain", parseSniffed],
]);

/** What to say to whoever sent something else. */
const advice =
  "send a JSON array or value as application/json, one JSON value a line as application/x-ndjson, or either as text/plain";

/**
 * Takes an ingest body apart into records, each a JSON value as it came.
 *
 * `application/json` is an array of records or one record, and is taken or refused as a whole, but for records above
 * `recordBytesMax`. NDJSON is judged line by line. `text/plain` (what a beacon can send without a preflight) and no
 * content type are JSON if they parse as JSON, else NDJSON.
 *
 * @param contentType the request's header; parameters do not count
 * @throws ForebayError `unsupported_media_type`, `bad_header` (the content type), `empty_body`, `empty_array`, `bad_json`,
 *   `bad_utf8`, `json_too_deep`, `too_many_records`; per record `record_too_large` and, in lines, what else is wrong with it
 *   are in `refused`
 */
export function parseIngest(body: Uint8Array, contentType: string | null): Parsed {
  const type = contentType === null ? "text/plain" : mediaType(contentType);
  const parse = parsers.get(type);
  if (parse === undefined) {
    throw new ForebayError(
      "unsupported_media_type",
      `Content-Type ${type} is not taken here: ${advice}`,
    );
  }
  if (textLines(body).next().done === true) {
    throw new ForebayError("empty_body", `the body holds no record: ${advice}`);
  }
  return parse(body);
}

function parseJson(body: Uint8Array): Parsed {
  const messages = splitJson(body);
  if (messages.length === 0) {
    throw new ForebayError("empty_array", "the JSON array holds no record");
  }
  const records: Accepted[] = [];
  const refused: Refusal[] = [];
  messages.forEach((bytes, index) => {
    if (bytes.length > limits.recordBytesMax) {
      refused.push(tooLarge(bytes, index));
    } else {
      records.push({ index, bytes });
    }
  });
  return { records, refused, received: messages.length };
}

/**
 * JSON if it is, else NDJSON. A body that opens like JSON counts as NDJSON only if its first line is a value by itself:
 * otherwise it is one damaged document, and lines of it that happen to parse are not records.
 */
function parseSniffed(body: Uint8Array): Parsed {
  try {
    return parseJson(body);
  } catch (error) {
    const first = textLines(body).next().value;
    if (first === undefined || isDamaged(first, error)) {
      throw error;
    }
    return advised(parseLines(body));
  }
}

function isDamaged(firstLine: Uint8Array, error: unknown): boolean {
  const other =
    !(error instanceof ForebayError) ||
    error.code === "too_many_records" ||
    error.code === "empty_array";
  const opensLikeJson = firstLine[0] === 0x5b || firstLine[0] === 0x7b;
  return other || (opensLikeJson && lineRefusal(firstLine, 0) !== null);
}

/** Lines of plain text get to know what would be taken. */
function advised(parsed: Parsed): Parsed {
  const refused = parsed.refused.map((refusal) =>
    refusal.code === "bad_json"
      ? { ...refusal, message: `${refusal.message}; ${advice}` }
      : refusal,
  );
  return { ...parsed, refused };
}
