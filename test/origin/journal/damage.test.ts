import { beforeAll, describe, expect, it } from "vitest";
import { MemoryDisk } from "../../../origin/storage/mod.ts";
import type { ForebayError } from "../../../shared/errors/mod.ts";
import {
  decodeBatchHeader,
  encodeBatchHeader,
  type BatchHeader,
} from "../../../origin/journal/batchHeader.ts";
import { viewOf } from "../../../origin/journal/layout.ts";
import { crc32c } from "../../../shared/crc/mod.ts";
import { seededRandom } from "../seededRandom.ts";
import {
  diskOf,
  drive,
  entry,
  KiB,
  marks,
  open,
  openRefusal,
  settle,
  shardDir,
  snapshot,
  type OpenChoices,
} from "./harness.ts";

const segment = (generation: number): string => `${shardDir}/000000000000000${generation}.segment`;
const manifest = `${shardDir}/manifest`;
const block = 4096;

/** Batches of one entry each; the disk is what a kill leaves. */
async function written(
  entries: number,
  length: number,
  choices: OpenChoices = {},
): Promise<Map<string, Uint8Array>> {
  const disk = new MemoryDisk();
  const { journal } = await open(disk, choices);
  for (let i = 1; i <= entries; i++) {
    journal.append([entry(i, length)]);
    await journal.flush();
  }
  await settle();
  return snapshot(disk);
}

type Files = Map<string, Uint8Array>;

function bytesOf(files: Files, path: string): Uint8Array {
  const bytes = files.get(path);
  if (bytes === undefined) {
    throw new Error(`${path} is not among ${[...files.keys()].join(", ")}`);
  }
  return bytes;
}

function picture(disk: MemoryDisk): string[] {
  return [...disk.files()].map(([path, bytes]) => `${path} ${marks([bytes])[0]}`);
}

function flip(files: Files, path: string, at: number): void {
  const bytes = bytesOf(files, path);
  bytes[at] = (bytes[at] ?? 0) ^ 0x10;
}

/** Refused, and every byte on the disk is as before. */
async function refusedUnchanged(files: Files, choices: OpenChoices = {}): Promise<ForebayError> {
  const disk = await diskOf(files);
  const before = picture(disk);
  const error = await openRefusal(disk, choices);
  expect(picture(disk)).toEqual(before);
  // The lock was released: the refusal repeats itself.
  expect((await openRefusal(disk, choices)).code).toBe(error.code);
  return error;
}

/** Opens, goes on, loses power, opens again. How many of the first entries there were. */
async function recovers(files: Files, length: number): Promise<number> {
  const disk = await diskOf(files);
  const { journal, replayed } = await open(disk);
  const expected = Array.from({ length: replayed.length + 1 }, (_, i) => entry(i + 1, length));
  expect(marks(replayed)).toEqual(marks(expected.slice(0, -1)));
  journal.append([entry(expected.length, length)]);
  await journal.flush();
  const again = await open(disk.crash(seededRandom(1), 0));
  expect(marks(again.replayed)).toEqual(marks(expected));
  return replayed.length;
}

/** Three segments of 16 KiB with two batches each: blocks header, batch, batch, SEAL. */
let three: Files;
beforeAll(async () => {
  three = await written(6, 3000);
});
const files = (): Files => new Map([...three].map(([path, bytes]) => [path, bytes.slice()]));

describe("recovery table: what there must be", () => {
  it("is as these tests assume", () => {
    expect([...three.keys()].toSorted()).toEqual(
      [manifest, segment(1), segment(2), segment(3), segment(4)].toSorted(),
    );
  });

  it("no segments, no manifest: empty", async () => {
    expect(await recovers(new Map(), 10)).toBe(0);
  });

  it("no segments, but the manifest says there were some: refused", async () => {
    const error = await refusedUnchanged(new Map([[manifest, bytesOf(files(), manifest)]]));
    expect(error.code).toBe("journal_corrupt");
    expect(error.message).toBe(
      `${segment(1)}: expected the segments 1 to 3, found 0 files and not this one; nothing was changed`,
    );
  });

  it.each([1, 2, 3])("segment %i vanished: refused", async (generation) => {
    const some = files();
    some.delete(segment(generation));
    const error = await refusedUnchanged(some);
    expect(error.code).toBe("journal_corrupt");
    expect(error.message).toContain(
      `${segment(generation)}: expected the segments 1 to 4, found 3`,
    );
  });

  it("segments without the manifest they require: refused", async () => {
    const some = files();
    some.delete(manifest);
    const error = await refusedUnchanged(some);
    expect(error.code).toBe("journal_corrupt");
    expect(error.message).toBe(
      `${manifest}: 4 segments are there, but the manifest they require is not; nothing was changed`,
    );
  });

  it("a manifest with one damaged record goes on by the other, with two it is refused", async () => {
    for (const at of [30, block + 30]) {
      const some = files();
      flip(some, manifest, at);
      expect(await recovers(some, 3000)).toBe(6);
    }
    const both = files();
    flip(both, manifest, 30);
    flip(both, manifest, block + 30);
    const error = await refusedUnchanged(both);
    expect(error.message).toContain("neither of its two records is valid");
    const short = files();
    short.set(manifest, bytesOf(short, manifest).slice(0, 5000));
    expect((await refusedUnchanged(short)).message).toContain("expected 8192 bytes, found 5000");
  });

  it("files half made by a crash are removed, unknown ones left alone", async () => {
    const some = files();
    some.set(`${segment(5)}.new`, new Uint8Array(100));
    some.set(`${shardDir}/probe`, new Uint8Array(4096));
    some.set(`${shardDir}/notes.txt`, new Uint8Array(3));
    const disk = await diskOf(some);
    await (await open(disk)).journal.close();
    const names = [...disk.files().keys()];
    expect(names).not.toContain(`${segment(5)}.new`);
    expect(names).not.toContain(`${shardDir}/probe`);
    expect(names).toContain(`${shardDir}/notes.txt`);
  });
});

describe("recovery table: a sealed segment", () => {
  it.each([
    ["a batch's header", block + 9, "offset 4096: expected header CRC"],
    ["a batch's payload", block + 100, "offset 4096: expected payload CRC"],
    ["the second batch", 2 * block + 2000, "offset 8192: expected payload CRC"],
    ["the SEAL", 3 * block + 20, "offset 12288: expected header CRC"],
    ["the SEAL's magic", 3 * block, "offset 12288: expected a batch (magic 0x54414246)"],
  ])("damage in %s: refused, nothing changed", async (_what, at, message) => {
    for (const generation of [1, 2]) {
      const some = files();
      flip(some, segment(generation), at);
      const error = await refusedUnchanged(some);
      expect(error.code).toBe("journal_corrupt");
      expect(error.message).toContain(`${segment(generation)}: the chain ends before SEAL at`);
      expect(error.message).toContain(message);
      expect(error.message).toContain(", found ");
    }
  });

  it("zeros where a batch was: refused", async () => {
    const some = files();
    bytesOf(some, segment(2)).fill(0, block, 2 * block);
    expect((await refusedUnchanged(some)).message).toContain("offset 4096: expected a batch");
  });

  it("two segments swapped: refused by their generation", async () => {
    const some = files();
    some.set(segment(1), bytesOf(three, segment(2)).slice());
    some.set(segment(2), bytesOf(three, segment(1)).slice());
    expect((await refusedUnchanged(some)).message).toContain("expected generation 1, found 2");
  });

  it("two batches swapped: refused by their seq", async () => {
    const some = files();
    const bytes = bytesOf(some, segment(1));
    const first = bytes.slice(block, 2 * block);
    bytes.copyWithin(block, 2 * block, 3 * block);
    bytes.set(first, 2 * block);
    expect((await refusedUnchanged(some)).message).toContain("expected seq 1, found 2");
  });

  it("a segment of another journal: refused by its id", async () => {
    const some = files();
    const disk = new MemoryDisk();
    await (await open(disk, { seed: 99 })).journal.close();
    some.set(segment(1), bytesOf(snapshot(disk), segment(1)));
    expect((await refusedUnchanged(some)).message).toContain("expected id ");
  });

  it.each([
    [0, "offset 0: expected the magic FBYSEGMT"],
    [20, "offset 64: expected header CRC"],
    [66, "offset 64: expected header CRC"],
  ])("damage at %i of a segment's header: refused", async (at, message) => {
    for (const generation of [1, 3, 4]) {
      const some = files();
      flip(some, segment(generation), at);
      const error = await refusedUnchanged(some);
      expect(error.code).toBe("journal_corrupt");
      expect(error.message).toContain(message);
    }
  });

  it("J31 a truncated file: refused with both sizes", async () => {
    for (const size of [0, 60, 4095, 4096, 12288, 16383]) {
      for (const generation of [1, 3, 4]) {
        const some = files();
        some.set(segment(generation), bytesOf(some, segment(generation)).slice(0, size));
        const error = await refusedUnchanged(some);
        expect(error.code).toBe("journal_corrupt");
        expect(error.message).toContain(`found ${size}`);
      }
    }
  });
});

describe("recovery table: the active segment", () => {
  it("a torn last batch that no later one attests is a crash's tail", async () => {
    for (const at of [2 * block + 9, 2 * block + 100, 2 * block]) {
      const some = files();
      flip(some, segment(3), at);
      expect(await recovers(some, 3000)).toBe(5);
    }
  });

  it("damage that a later batch attests as acknowledged: refused, every byte kept", async () => {
    for (const at of [block + 9, block + 100, block]) {
      const some = files();
      flip(some, segment(3), at);
      const error = await refusedUnchanged(some);
      expect(error.code).toBe("journal_corrupt");
      expect(error.message).toContain(
        `${segment(3)}: acknowledged data is damaged at offset 4096: expected `,
      );
      // Batches 1, 2, SEAL 3, 4, 5, SEAL 6; 7 is damaged and 8 behind it knows that it was durable.
      expect(error.message).toContain("the batch 8 at offset 8192 says that 7 was durable");
    }
  });

  it("damage after a close is always seen: the closing batch attests the last entry", async () => {
    const disk = new MemoryDisk();
    const { journal } = await open(disk, { segmentBytes: 64 * KiB });
    journal.append([entry(1)]);
    await journal.close();
    const closed = snapshot(disk);
    flip(closed, segment(1), block + 80);
    const error = await refusedUnchanged(closed, { segmentBytes: 64 * KiB });
    expect(error.message).toContain("the batch 2 at offset 8192 says that 1 was durable");
  });

  it("no batch yet: a crash right after a rotation, gone on in it", async () => {
    const some = files();
    bytesOf(some, segment(3)).fill(0, block);
    expect(await recovers(some, 3000)).toBe(4);
  });

  it("sealed, and the manifest not yet moved on: gone on in the next, made anew if missing", async () => {
    const two = await written(5, 3000);
    const some: Files = new Map([...two].map(([path, bytes]) => [path, bytes.slice()]));
    // Two entries of segment 3 are cut away, and the manifest goes back to 2.
    bytesOf(some, segment(3)).fill(0, block);
    bytesOf(some, manifest).fill(0, newestManifestRecord(some), newestManifestRecord(some) + 64);
    expect(
      await recovers(new Map([...some].map(([path, bytes]) => [path, bytes.slice()])), 3000),
    ).toBe(4);
    some.delete(segment(3));
    some.delete(segment(4));
    expect(await recovers(some, 3000)).toBe(4);
  });

  it("the end of a sealed segment lost, its successor in use, the manifest behind: refused", async () => {
    const some = files();
    const at = newestManifestRecord(some);
    bytesOf(some, manifest).fill(0, at, at + 64);
    flip(some, segment(2), 3 * block);
    expect((await refusedUnchanged(some)).message).toContain(
      `holds batch 7, but segment 2 before it ends at offset 12288 without SEAL`,
    );
  });
});

/** Offset of the record with the higher generation (its low byte stands at 16). */
function newestManifestRecord(some: Files): number {
  const bytes = bytesOf(some, manifest);
  return (bytes[16] ?? 0) > (bytes[block + 16] ?? 0) ? 0 : block;
}

describe("what another build or configuration made", () => {
  it("J21 a wrong segment size: refused with both numbers", async () => {
    const error = await refusedUnchanged(files(), { segmentBytes: 32 * KiB });
    expect(error.code).toBe("config_invalid");
    expect(error.message).toBe(
      `${segment(1)} is a segment of 16384 bytes, configured are 32768; a journal keeps the size it was made with`,
    );
  });

  it("sizes that make no ring: refused with both numbers", async () => {
    const disk = new MemoryDisk();
    const odd = await openRefusal(disk, { segmentBytes: 20_000 });
    expect(odd.message).toBe(
      "segments of 20000 bytes: expected a multiple of 4096, at least 16384",
    );
    const small = await openRefusal(disk, { segmentBytes: 16 * KiB, budgetBytes: 20 * KiB });
    expect(small.message).toBe(
      "a journal budget of 20480 bytes: expected at least two segments of 16384",
    );
    expect([odd.code, small.code]).toEqual(["config_invalid", "config_invalid"]);
    expect(disk.files().size).toBe(0);
  });

  /** Sets the version and makes the checksum right again. */
  function newer(bytes: Uint8Array, at: number, length: number, seed = 0): void {
    const view = new DataView(bytes.buffer, bytes.byteOffset + at, length);
    view.setUint16(length === 64 ? 8 : length === 68 && seed === 0 ? 8 : 4, 2, true);
    view.setUint32(length - 4, crc32c(bytes.subarray(at, at + length - 4), seed), true);
  }

  it("a newer version of segment, batch or manifest: refused, whatever else is in it", async () => {
    const saltOf = (bytes: Uint8Array): number =>
      new DataView(bytes.buffer, bytes.byteOffset).getUint32(60, true);
    const made: ((some: Files) => void)[] = [
      (some) => newer(bytesOf(some, segment(2)), 0, 68),
      (some) => {
        const bytes = bytesOf(some, segment(3));
        newer(bytes, 2 * block, 68, saltOf(bytes));
      },
      (some) => newer(bytesOf(some, manifest), newestManifestRecord(some), 64),
    ];
    for (const change of made) {
      const some = files();
      change(some);
      const error = await refusedUnchanged(some);
      expect(error.code).toBe("format_unsupported");
      expect(error.message).toMatch(/ is in format version 2, this build reads 1; /);
    }
  });
});

describe("stale and hostile bytes", () => {
  it("J23 bytes of an earlier life of a segment are free space", async () => {
    const some = files();
    const active = bytesOf(some, segment(3));
    // What stood at these places of segment 1 (other generation and salt) now lies behind the chain.
    active.set(bytesOf(three, segment(1)).subarray(3 * block), 3 * block);
    active.set(bytesOf(three, segment(1)).subarray(2 * block, 3 * block), 2 * block);
    expect(await recovers(some, 3000)).toBe(5);
  });

  it("J23 an unacknowledged batch behind a hole never chains on, though the retry is the same", async () => {
    const sizes = { segmentBytes: 128 * KiB };
    const [one, two] = [entry(1, 20 * KiB), entry(2, 20 * KiB)];
    const disk = new MemoryDisk({ stepped: true });
    const { journal } = await drive(disk, open(disk, sizes));
    journal.append([one]);
    await settle();
    journal.append([two]);
    await settle();
    expect(disk.waiting.map(({ call }) => call.position)).toEqual([block, 7 * block]);
    disk.waiting[1]?.release();
    await settle();
    expect(journal.durable).toBe(0);

    // The second batch is there, the first is not, and no later batch attests it.
    const second = disk.crash(seededRandom(1), 0);
    const before = bytesOf(snapshot(second), segment(1));
    expect(before[7 * block]).toBe("F".charCodeAt(0));
    const retried = await open(second, sizes);
    expect(retried.replayed).toEqual([]);
    retried.journal.append([one]);
    await retried.journal.flush();
    const after = bytesOf(snapshot(second), segment(1));
    expect(marks([after.subarray(7 * block)])).toEqual(marks([before.subarray(7 * block)]));

    const third = await open(second.crash(seededRandom(1), 0), sizes);
    expect(marks(third.replayed)).toEqual(marks([one]));
  });

  it("a record that looks like a batch header is never taken for one", async () => {
    const sizes = { segmentBytes: 64 * KiB };
    const some = await written(1, 100, sizes);
    const real = bytesOf(some, segment(1)).slice(block, block + 68);
    // The attacker knows the format, not the salt: term, durableSeq and CRC as large as can be.
    const forged = real.slice();
    new DataView(forged.buffer).setUint32(40, 1000, true);
    new DataView(forged.buffer).setUint32(64, crc32c(forged.subarray(0, 64)), true);
    const payload = new Uint8Array(8192);
    payload.set(forged, 4096 - 72);
    const disk = await diskOf(some);
    const { journal } = await open(disk, sizes);
    journal.append([payload]);
    await journal.flush();
    const torn = snapshot(disk);
    expect(bytesOf(torn, segment(1)).subarray(3 * block, 3 * block + 68)).toEqual(forged);
    flip(torn, segment(1), 2 * block);
    const again = await open(await diskOf(torn), sizes);
    expect(marks(again.replayed)).toEqual(marks([entry(1, 100)]));
  });

  /** A batch a writer of this journal could have written, but for its lengths. */
  async function withBatch(change: Partial<BatchHeader>, payload: Uint8Array): Promise<Files> {
    const some = await written(1, 100);
    const bytes = bytesOf(some, segment(1));
    const salt = viewOf(bytes).getUint32(60, true);
    const first = decodeBatchHeader(bytes.subarray(block), salt, segment(1));
    if (first.header === undefined) {
      throw new Error(first.why);
    }
    const header = {
      ...first.header,
      seq: 2,
      firstLsn: 2,
      durableSeq: 1,
      previousCrc: first.crc,
      length: payload.length,
      payloadCrc: crc32c(payload),
      ...change,
    };
    const area = bytes.subarray(2 * block);
    encodeBatchHeader(area, header, salt);
    area.set(payload, 68);
    return some;
  }

  it("J23 what a batch of an earlier term says was durable is no witness", async () => {
    for (const [term, expected] of [
      [1, "went on"],
      [2, "journal_corrupt"],
    ] as const) {
      const disk = await diskOf(await written(1, 100, { segmentBytes: 64 * KiB }));
      const second = await open(disk, { segmentBytes: 64 * KiB });
      second.journal.append([entry(2)]);
      await second.journal.flush();
      const some = snapshot(disk);
      const bytes = bytesOf(some, segment(1));
      const salt = viewOf(bytes).getUint32(60, true);
      const last = decodeBatchHeader(bytes.subarray(2 * block), salt, segment(1));
      expect(last.header).toMatchObject({ term: 2, seq: 2 });
      if (last.header !== undefined) {
        const header = { ...last.header, term, seq: 4, durableSeq: 3, firstLsn: 4 };
        encodeBatchHeader(bytes.subarray(4 * block), header, salt);
      }
      const result = await open(await diskOf(some), { segmentBytes: 64 * KiB }).then(
        ({ replayed }) => (replayed.length === 2 ? "went on" : "lost"),
        (error: ForebayError) => error.code,
      );
      expect(result).toBe(expected);
    }
  });

  it("J31 a payload length that leads out of the segment is no batch", async () => {
    const room = 16 * KiB - 2 * block - 68;
    for (const length of [room + 1, 2 ** 31, 2 ** 32 - 1]) {
      const some = await withBatch({ length }, new Uint8Array(8));
      expect(await recovers(some, 100)).toBe(1);
    }
  });

  it.each([
    ["an entry past the end", [200, 0, 0, 0, 1, 2], 1, "found 1 ending at 204"],
    ["a length of 4 GiB", [255, 255, 255, 255, 1, 2], 1, "found 1 ending at 4294967299"],
    ["a rest too short for a length", [1, 0, 0, 0, 9, 0, 0], 1, "found 1 ending at 5"],
    ["fewer entries than it says", [1, 0, 0, 0, 9], 2, "found 1 ending at 5"],
    ["more entries than it says", [0, 0, 0, 0, 0, 0, 0, 0], 1, "found 2 ending at 8"],
  ])(
    "J31 valid checksums over %s: refused, replayed not at all",
    async (_what, payload, entries, found) => {
      const some = await withBatch({ entries }, Uint8Array.from(payload));
      const error = await refusedUnchanged(some);
      expect(error.code).toBe("journal_corrupt");
      expect(error.message).toContain(
        `batch at offset 8192: expected ${entries} entries in ${payload.length} bytes, ${found}`,
      );
    },
  );

  it("J31 every single flipped bit is refused or costs only unattested entries", async () => {
    const all = [1, 2, 3, 4, 5, 6].map((n) => entry(n, 3000));
    let refused = 0;
    for (let at = 0; at < 16 * KiB; at += 61) {
      for (const path of [segment(2), segment(3)]) {
        const some = files();
        flip(some, path, at);
        const disk = await diskOf(some);
        const result = await open(disk).catch((error: unknown) => error as ForebayError);
        if ("code" in result) {
          refused += 1;
          expect(["journal_corrupt", "format_unsupported", "config_invalid"]).toContain(
            result.code,
          );
        } else {
          const { length } = result.replayed;
          expect(marks(result.replayed)).toEqual(marks(all.slice(0, length)));
          expect(length).toBeGreaterThanOrEqual(5);
        }
      }
    }
    expect(refused).toBeGreaterThan(150);
  });
});
