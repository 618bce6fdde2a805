/** What the load writes: a record that says who wrote it, which request and place it had, and a check of itself. */
import { crc32c } from "../../shared/crc/mod.ts";

export interface LoadRecord {
  readonly producer: string;
  readonly seq: number;
  readonly index: number;
  readonly pad: string;
  readonly check: number;
}

const checkOf = (r: Omit<LoadRecord, "check">): number =>
  crc32c(new TextEncoder().encode(`${r.producer}|${r.seq}|${r.index}|${r.pad}`));

export function loadRecord(
  producer: string,
  seq: number,
  index: number,
  padLength: number,
): LoadRecord {
  const body = { producer, seq, index, pad: "x".repeat(padLength) };
  return { ...body, check: checkOf(body) };
}

/** Throws when the record is torn. */
export function assertWhole(record: LoadRecord): void {
  const found = checkOf(record);
  if (found !== record.check) {
    throw new Error(`torn record of ${record.producer} #${record.seq}.${record.index}`);
  }
}
