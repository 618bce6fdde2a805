import { KiB } from "./harness.ts";

export const childSizes = { segmentBytes: 256 * KiB, budgetBytes: 1024 * 1024 * KiB };

/** Entry `n` of a child process, the same in every process: from 8 bytes to 40 KiB. */
export function ledgerEntry(n: number): Uint8Array {
  const length = n % 97 === 0 ? 40 * KiB : 8 + ((n * 7919) % 900);
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) {
    bytes[i] = n * 31 + i;
  }
  new DataView(bytes.buffer).setUint32(0, n, true);
  return bytes;
}
