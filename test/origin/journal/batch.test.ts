import { expect, it } from "vitest";
import { Batch } from "../../../origin/journal/batch.ts";
import { seededRandom } from "../seededRandom.ts";

const place = { generation: 1, position: 4096 };
const headerBytes = 68;

/** The payload of these entries, written in the plainest way. */
function plain(entries: readonly (readonly Uint8Array[])[]): number[] {
  const bytes: number[] = [];
  for (const parts of entries) {
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    bytes.push(length & 255, (length >> 8) & 255, (length >> 16) & 255, length >>> 24);
    for (const part of parts) {
      bytes.push(...part);
    }
  }
  return bytes;
}

it("J34 entries of every length 0–160 from every alignment are copied as they are", () => {
  const { bytes } = seededRandom(34);
  const data = bytes(256);
  for (let alignment = 0; alignment < 8; alignment++) {
    const batch = new Batch(new Uint8Array(32_768), place, {
      firstLsn: 1,
      limit: 32_768,
      flags: 0,
    });
    const entries: Uint8Array[][] = [];
    for (let length = 0; length <= 160; length++) {
      const whole = data.subarray(alignment, alignment + length);
      const cut = (length * 7) % (length + 1);
      const parts = [whole.subarray(0, cut), whole.subarray(cut)];
      entries.push(parts);
      batch.add(parts, length);
    }
    expect(batch.entries).toBe(161);
    expect([...batch.area.subarray(headerBytes, batch.end)]).toEqual(plain(entries));
  }
});

it("J34 the one comparison takes an entry exactly while it and its length still fit", () => {
  for (let limit = headerBytes; limit < headerBytes + 200; limit++) {
    const batch = new Batch(new Uint8Array(4096), place, { firstLsn: 1, limit, flags: 0 });
    for (let length = 0; length <= 160; length++) {
      expect(batch.takes(length)).toBe(limit - headerBytes >= 4 + length);
    }
  }
});
