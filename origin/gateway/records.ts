const open = Buffer.from("[");
const comma = Buffer.from(",");
const close = Buffer.from("]");

/**
 * Records as one body, copied (the streams' views are valid for this turn only): back to back, or as a JSON
 * array that keeps every value as the bytes that came (P8).
 */
export function joinRecords(records: readonly Uint8Array[], json: boolean): Buffer<ArrayBuffer> {
  if (!json) {
    return Buffer.concat(records);
  }
  const parts: Uint8Array[] = [open];
  records.forEach((record, i) => {
    if (i > 0) {
      parts.push(comma);
    }
    parts.push(record);
  });
  parts.push(close);
  return Buffer.concat(parts);
}
