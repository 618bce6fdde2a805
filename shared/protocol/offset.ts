/**
 * Offset = `%016x_%016x`: number of the next record, byte position. Both are monotone and never reused,
 * so text order is stream order (Durable Streams §6).
 */
export interface Offset {
  readonly record: number;
  readonly byte: number;
}

const zeros: readonly string[] = Array.from({ length: 17 }, (_, n) => "0".repeat(n));

/** Padding by table: an offset is in every append's answer, and `padStart` costs half as much again. */
function hex16(n: number): string {
  const digits = n.toString(16);
  return `${zeros[16 - digits.length] ?? ""}${digits}`;
}

export function formatOffset(record: number, byte: number): string {
  return `${hex16(record)}_${hex16(byte)}`;
}

const shape = /^([0-9a-f]{16})_([0-9a-f]{16})$/;

/** The offset, or undefined when the text has not this form or leaves the safe integers. */
export function parseOffset(text: string): Offset | undefined {
  const m = shape.exec(text);
  if (m?.[1] === undefined || m[2] === undefined) {
    return undefined;
  }
  const record = Number.parseInt(m[1], 16);
  const byte = Number.parseInt(m[2], 16);
  return Number.isSafeInteger(record) && Number.isSafeInteger(byte) ? { record, byte } : undefined;
}
