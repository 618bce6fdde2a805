import { describe, expect, it } from "vitest";
import {
  chainBreak,
  decodeBatchHeader,
  encodeBatchHeader,
  type BatchHeader,
} from "../../../origin/journal/batchHeader.ts";
import { decodeSegmentHeader, encodeSegmentHeader } from "../../../origin/journal/segmentHeader.ts";
import { crc32c } from "../../../shared/crc/mod.ts";

const header: BatchHeader = {
  flags: 1,
  generation: 2,
  term: 3,
  seq: 4,
  firstLsn: 2 ** 40 + 5,
  durableSeq: 3,
  length: 6,
  entries: 7,
  previousCrc: 0x89abcdef,
  payloadCrc: 0x12345678,
};
const salt = 0xfeedbeef;

describe("batch header", () => {
  it("has the bytes FORMAT.md says", () => {
    const area = new Uint8Array(100).fill(255);
    const crc = encodeBatchHeader(area, header, salt);
    const u64 = (low: number, high = 0): number[] => [low, 0, 0, 0, 0, high, 0, 0];
    const u32 = (value: number): number[] => [0, 8, 16, 24].map((shift) => (value >>> shift) & 255);
    const fields = [
      ...new TextEncoder().encode("FBAT"),
      ...[1, 0, 1, 0],
      ...[...u64(2), ...u64(3), ...u64(4), ...u64(5, 1), ...u64(3)],
      ...[...u32(6), ...u32(7), ...u32(0x89abcdef), ...u32(0x12345678)],
    ];
    expect(fields).toHaveLength(64);
    expect([...area.subarray(0, 64)]).toEqual(fields);
    expect(crc).toBe(crc32c(Uint8Array.from(fields), salt));
    expect([...area.subarray(64, 68)]).toEqual(u32(crc));
    expect(area.subarray(68).every((byte) => byte === 255)).toBe(true);
    expect(decodeBatchHeader(area, salt, "x")).toEqual({ header, crc });
  });

  it("is none under another salt, and with any bit flipped", () => {
    const area = new Uint8Array(68);
    encodeBatchHeader(area, header, salt);
    expect(decodeBatchHeader(area, salt + 1, "x").header).toBeUndefined();
    for (let bit = 0; bit < 68 * 8; bit++) {
      const damaged = area.slice();
      damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(decodeBatchHeader(damaged, salt, "x").header).toBeUndefined();
    }
  });
});

describe("J23 what follows in the chain", () => {
  const end = { seq: 3, term: 3, lsn: 2 ** 40 + 4, crc: 0x89abcdef };

  it("the next batch of the same or a later boot", () => {
    expect(chainBreak(header, end, 2)).toBeUndefined();
    expect(chainBreak({ ...header, term: 9 }, end, 2)).toBeUndefined();
  });

  it.each([
    [{ generation: 1 }, "expected segment generation 2, found 1"],
    [{ seq: 5 }, "expected seq 4, found 5"],
    [{ seq: 3 }, "expected seq 4, found 3"],
    [{ term: 2 }, "expected a term of at least 3, found 2"],
    [{ previousCrc: 1 }, "expected previous header CRC 0x89abcdef, found 0x00000001"],
    [{ firstLsn: 7 }, `expected first LSN ${2 ** 40 + 5}, found 7`],
  ])("not %j", (change, why) => {
    expect(chainBreak({ ...header, ...change }, end, 2)).toBe(why);
  });
});

it("segment header has the bytes FORMAT.md says", () => {
  const id = Uint8Array.from({ length: 16 }, (_, i) => i);
  const segment = { id, generation: 5, createdAt: 2 ** 33 + 1, bytes: 65536, salt: 0x01020304 };
  const block = encodeSegmentHeader(segment);
  expect(block).toHaveLength(4096);
  const fields = [
    ...new TextEncoder().encode("FBYSEGMT"),
    ...[1, 0, 0, 0, 1, 0, 0, 0],
    ...id,
    ...[5, 0, 0, 0, 0, 0, 0, 0],
    ...[1, 0, 0, 0, 2, 0, 0, 0],
    ...[0, 0, 1, 0, 0, 0, 0, 0],
    ...[1, 0, 0, 0, 4, 3, 2, 1],
  ];
  expect([...block.subarray(0, 64)]).toEqual(fields);
  expect(new DataView(block.buffer).getUint32(64, true)).toBe(crc32c(Uint8Array.from(fields)));
  expect(block.subarray(68).every((byte) => byte === 0)).toBe(true);
  expect(decodeSegmentHeader(block, "x")).toEqual(segment);
});
