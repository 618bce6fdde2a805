import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { crc32c } from "../../../shared/crc/mod.ts";

const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);

/** The definition, one bit at a time: the yardstick for the tables. */
function bitwise(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) {
      crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
    }
  }
  return ~crc >>> 0;
}

describe("CRC-32C", () => {
  // RFC 3720 B.4 prints the CRC's bytes in wire order; these are the same numbers, most significant first.
  const iscsiRead = new Uint8Array(48);
  iscsiRead.set([0x01, 0xc0], 0);
  iscsiRead.set([0x14, 0, 0, 0, 0, 0, 0x04, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18, 0x28], 16);
  iscsiRead.set([0x02], 40);

  test.each<[string, Uint8Array, number]>([
    ["the check value", ascii("123456789"), 0xe3069283],
    ["nothing", new Uint8Array(0), 0],
    ["one letter", ascii("a"), 0xc1d04330],
    ["RFC 3720: 32 zeros", new Uint8Array(32), 0x8a9136aa],
    ["RFC 3720: 32 ones", new Uint8Array(32).fill(0xff), 0x62a8ab43],
    ["RFC 3720: 32 incrementing", Uint8Array.from({ length: 32 }, (_, i) => i), 0x46dd794e],
    ["RFC 3720: 32 decrementing", Uint8Array.from({ length: 32 }, (_, i) => 31 - i), 0x113fdb5c],
    ["RFC 3720: an iSCSI SCSI Read (10) PDU", iscsiRead, 0xd9963a56],
  ])("%s", (_, bytes, expected) => {
    expect(crc32c(bytes)).toBe(expected);
    expect(bitwise(bytes)).toBe(expected);
  });

  test("any bytes at any alignment agree with the definition", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(16), (bytes, skip) => {
        const view = bytes.subarray(Math.min(skip, bytes.length));
        expect(crc32c(view)).toBe(bitwise(view));
      }),
    );
  });

  test("a CRC goes on where another ended", () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.uint8Array(), (a, b) => {
        const whole = new Uint8Array([...a, ...b]);
        expect(crc32c(b, crc32c(a))).toBe(crc32c(whole));
      }),
    );
  });
});
