import { ForebayError } from "../errors/mod.ts";
import { limits } from "../limits.ts";
import { JsonScanner } from "./scanner.ts";

/**
 * The messages of a JSON body: the elements of a top-level array, or the one value (Durable Streams §9.1: exactly one
 * level is flattened). Each is the bytes as they came, numbers, key order, duplicate keys and escapes kept (P8), without
 * the white space around it: a view of `body`, not a copy. `[]` gives none.
 *
 * The depth limit holds for each message by itself; the flattened array does not count.
 *
 * @throws ForebayError `bad_json` with the byte's position, `bad_utf8`, `json_too_deep`, `too_many_records`
 */
export function splitJson(body: Uint8Array): Uint8Array[] {
  const scanner = new JsonScanner(body);
  scanner.space();
  if (!scanner.accept(0x5b)) {
    return [scanner.onlyValue()];
  }
  const messages: Uint8Array[] = [];
  scanner.space();
  if (!scanner.accept(0x5d)) {
    do {
      scanner.space();
      const start = scanner.at;
      scanner.value(0);
      messages.push(body.subarray(start, scanner.at));
      checkCount(messages.length);
      scanner.space();
    } while (scanner.accept(0x2c));
    if (!scanner.accept(0x5d)) {
      throw scanner.unexpected('"," or "]"');
    }
  }
  scanner.finish();
  return messages;
}

/**
 * Whether a record is one JSON value, with nothing but white space around it.
 *
 * @throws ForebayError `bad_json` with the byte's position, `bad_utf8`, `json_too_deep`
 */
export function checkJsonValue(record: Uint8Array): void {
  new JsonScanner(record).onlyValue();
}

/** @throws ForebayError `too_many_records` when the request holds more than it may */
export function checkCount(records: number): void {
  if (records > limits.requestRecordsMax) {
    throw new ForebayError(
      "too_many_records",
      `the request holds more than ${limits.requestRecordsMax} records; send it in parts`,
    );
  }
}
