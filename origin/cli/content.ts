import { ForebayError } from "../../shared/errors/mod.ts";

/** How the commands show and make the records of a content type. */
export type Shape = "json" | "lines" | "bytes";

export function shapeOf(contentType: string): Shape {
  const type = (contentType.split(";")[0] ?? "").trim().toLowerCase();
  if (type === "application/json" || type.endsWith("+json")) {
    return "json";
  }
  return type.startsWith("text/") || type === "application/x-ndjson" ? "lines" : "bytes";
}

/**
 * One append's body from records of text: a JSON array, or lines each with its end.
 *
 * @param firstNumber the number of the first record, for the message
 * @throws ForebayError `bad_json` with the record's number and its beginning
 */
export function bodyOf(records: readonly string[], shape: Shape, firstNumber: number): Uint8Array {
  if (shape === "json") {
    // Checked one by one: `1,2` is no JSON value, though it would pass as two inside the array.
    records.forEach((record, i) => checkJson(record, firstNumber + i));
    return Buffer.from(`[${records.join(",")}]`);
  }
  return Buffer.from(
    shape === "lines" ? records.map((record) => `${record}\n`).join("") : records.join(""),
  );
}

function checkJson(record: string, number: number): void {
  try {
    JSON.parse(record);
  } catch (cause) {
    const shown = JSON.stringify(record.length > 60 ? `${record.slice(0, 60)}…` : record);
    throw new ForebayError("bad_json", `record ${number} is not JSON: ${shown}`, { cause });
  }
}
