import { randomBytes } from "node:crypto";
import type { Random } from "../../shared/ports/mod.ts";

/** The operating system's randomness, fit for ids and nonces. */
export const random: Random = {
  next(): number {
    // 53 random bits, as many as a double holds.
    const bytes = randomBytes(8);
    return (bytes.readUInt32LE(0) * 2 ** 21 + (bytes.readUInt32LE(4) >>> 11)) / 2 ** 53;
  },
  bytes: (n) => new Uint8Array(randomBytes(n)),
};
