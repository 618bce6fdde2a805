import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { MemoryDisk } from "../../../origin/storage/mod.ts";
import { lsn } from "../../../shared/ids/mod.ts";
import { seededRandom } from "../seededRandom.ts";
import {
  diskOf,
  entry,
  failing,
  KiB,
  marks,
  open,
  openRefusal,
  recorded,
  settle,
  shardDir,
  snapshot,
} from "./harness.ts";
import { fill, numbered, segment, segmentsOf, watermark } from "./segmentsUnderTest.ts";

describe("trim", () => {
  it("J24 its steps in their literal order: watermark, directory, manifest, files oldest first, directory", async () => {
    const disk = new MemoryDisk();
    const opened = await open(disk);
    await fill(opened, 13);
    expect(segmentsOf(disk)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    const log = recorded(disk);
    opened.journal.trim(lsn(12));
    await settle(20);
    const recycling = (from: number, to: number): string[] => [
      `rename ${from}.segment ${to}.segment.new`,
      `write ${to}.segment.new 0+4096`,
      `sync ${to}.segment.new`,
      `rename ${to}.segment.new ${to}.segment`,
      "syncDirectory /data/journal/0",
    ];
    expect(log).toEqual([
      "open watermark.new create",
      "write watermark.new 0+8192",
      "sync watermark.new",
      "rename watermark.new watermark",
      "syncDirectory /data/journal/0",
      "syncDirectory /data/journal/0",
      "write manifest.new 0+64",
      "sync manifest.new",
      ...recycling(1, 8),
      ...recycling(2, 9),
      ...recycling(3, 10),
      ...recycling(4, 11),
      "unlink 5.segment",
      "unlink 6.segment",
      "syncDirectory /data/journal/0",
    ]);
    expect(opened.journal.trimmed).toBe(12);
    expect(opened.journal.stats()).toMatchObject({ segments: 5, spares: 4 });
    log.splice(0);
    await fill(opened, 2);
    expect(log).toContain("open 8.segment commit");
    log.splice(0);
    opened.journal.trim(lsn(14));
    await settle(20);
    expect(log).toEqual([
      "write watermark.new 4096+64",
      "sync watermark.new",
      "syncDirectory /data/journal/0",
      "write manifest.new 0+64",
      "sync manifest.new",
      ...recycling(7, 12),
    ]);
  });

  it("J15 frees the oldest sealed segment at once, with no further traffic", async () => {
    const disk = new MemoryDisk();
    const opened = await open(disk);
    await fill(opened, 5);
    expect(segmentsOf(disk)).toEqual([1, 2, 3]);
    opened.journal.trim(lsn(1));
    await settle();
    expect(opened.journal.trimmed).toBe(0);
    expect(segmentsOf(disk)).toEqual([1, 2, 3]);
    opened.journal.trim(lsn(2));
    await settle();
    expect(opened.journal.trimmed).toBe(2);
    expect(segmentsOf(disk)).toEqual([2, 3, 4]);
    // A lower mark than before changes nothing.
    opened.journal.trim(lsn(1));
    await settle();
    expect(segmentsOf(disk)).toEqual([2, 3, 4]);
    expect(opened.clock.armed.size).toBe(0);
  });

  it("J32 what a start reads is synced before it is served, the watermark too", async () => {
    const disk = new MemoryDisk();
    const opened = await open(disk);
    await fill(opened, 5);
    opened.journal.trim(lsn(4));
    await settle(20);
    await opened.journal.close();
    const log = recorded(disk);
    await open(disk);
    expect(log.filter((call) => call.startsWith("sync"))).toEqual([
      "syncDirectory /data/journal",
      "syncDirectory /data",
      "syncDirectory /",
      "sync 3.segment",
      "sync 4.segment",
      "sync 5.segment",
      "sync manifest",
      "sync watermark",
      "syncDirectory /data/journal/0",
    ]);
  });

  it("replays what is above the mark, goes on after it, over any number of lives", async () => {
    let disk = new MemoryDisk();
    let trimmed = 0;
    let count = 0;
    for (let life = 0; life < 6; life++) {
      const opened = await open(disk);
      expect(opened.firstLsn).toBe(count === trimmed ? 0 : trimmed + 1);
      expect(marks(opened.replayed)).toEqual(numbered(trimmed + 1, count));
      expect([opened.journal.durable, opened.journal.trimmed]).toEqual([count, trimmed]);
      await fill(opened, 5 + life);
      count += 5 + life;
      opened.journal.trim(lsn(count - 1 - (life % 2)));
      await settle(20);
      if (life % 2 === 0) {
        await opened.journal.close();
        trimmed = count - 1;
      } else {
        trimmed = opened.journal.trimmed;
        expect(trimmed).toBe(count - 2);
        disk = disk.crash(seededRandom(life), 0);
      }
    }
  });

  it("J24 close writes the final mark, though no segment goes", async () => {
    const disk = new MemoryDisk();
    const opened = await open(disk, { segmentBytes: 64 * KiB });
    await fill(opened, 3);
    opened.journal.trim(lsn(2));
    await opened.journal.close();
    const again = await open(disk.crash(seededRandom(1), 0), { segmentBytes: 64 * KiB });
    expect([again.firstLsn, again.journal.trimmed, again.journal.durable]).toEqual([3, 2, 3]);
  });

  it("only what is durable may be trimmed", async () => {
    const opened = await open(new MemoryDisk());
    opened.journal.append([entry(1)]);
    expect(() => {
      opened.journal.trim(lsn(1));
    }).toThrow("invariant broken: only what is durable is trimmed");
  });

  it("the newest sealed segment stays until its successor has a durable batch", async () => {
    const disk = new MemoryDisk();
    const opened = await open(disk);
    await fill(opened, 4);
    await opened.journal.close();
    // Segment 2 is full and sealed by nothing; the next entry seals it and loses power before its own batch.
    const again = await open(disk);
    disk.observer = failing((call) => call.name === "write" && call.path === segment(3), "EIO");
    again.journal.append([entry(5, 3000)]);
    await settle();
    expect(again.failures).toHaveLength(1);
    const crashed = disk.crash(seededRandom(1), 0);
    const third = await open(crashed);
    expect(third.findings).toMatchObject({ sealed: 2, activeEmpty: 1 });
    third.journal.trim(lsn(4));
    await settle(20);
    expect(segmentsOf(crashed)).toEqual([2, 3, 4]);
    const fourth = await open(crashed.crash(seededRandom(1), 0));
    expect([fourth.journal.durable, fourth.journal.trimmed]).toEqual([4, 4]);
    fourth.journal.trim(lsn(4));
    fourth.journal.append([entry(5, 3000)]);
    await fourth.journal.flush();
    await settle(20);
    expect(fourth.journal.stats().segments).toBe(3);
    expect(fourth.journal.trimmed).toBe(4);
  });
});

describe("a step of a trim that fails", () => {
  it("J16 a rename or unlink stays pending and is tried again after 4 ms doubling to 1.024 s", async () => {
    const disk = new MemoryDisk();
    const opened = await open(disk);
    await fill(opened, 3);
    const waits: number[] = [];
    let tried = 0;
    disk.observer = (call) => {
      if (call.name !== "rename" || call.path !== segment(1)) {
        return undefined;
      }
      tried += 1;
      return "EIO";
    };
    opened.journal.trim(lsn(2));
    await settle();
    expect(tried).toBe(1);
    for (let i = 0, waited = 0; i < 10;) {
      opened.clock.advance(4);
      waited += 4;
      await settle(1);
      if (tried === 2) {
        waits.push(waited);
        tried = 1;
        waited = 0;
        i += 1;
      }
    }
    expect(waits).toEqual([4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024]);
    expect(opened.clock.armed.size).toBe(1);
    expect(opened.failures).toEqual([]);
    disk.observer = undefined;
    opened.clock.advance(1024);
    await settle(20);
    expect(segmentsOf(disk)).toEqual([2, 3]);
    expect(opened.clock.armed.size).toBe(0);
    expect(opened.journal.stats().segments).toBe(2);
  });

  it.each(["watermark", "manifest"])(
    "J14 a %s that cannot be written moves nothing; the retry writes the record again",
    async (name) => {
      const disk = new MemoryDisk();
      const opened = await open(disk);
      await fill(opened, 5);
      opened.journal.trim(lsn(2));
      await settle(20);
      const writes: number[] = [];
      let left = 3;
      disk.observer = (call) => {
        if (!call.path.startsWith(`${shardDir}/${name}`)) {
          return undefined;
        }
        if (call.name === "write") {
          writes.push(call.position);
        }
        return call.name === "sync" && left-- > 0 ? "EIO" : undefined;
      };
      opened.journal.trim(lsn(4));
      await settle(20);
      expect(new Set(writes).size).toBe(1);
      expect(writes).toHaveLength(3);
      expect(segmentsOf(disk)).toEqual([2, 3, 4]);
      expect(opened.failures).toEqual([]);
      opened.clock.advance(4);
      await settle(20);
      expect(writes).toHaveLength(4);
      expect(segmentsOf(disk)).toEqual([3, 4, 5]);
      expect(opened.journal.trimmed).toBe(4);
      const again = await open(disk.crash(seededRandom(1), 0));
      expect([again.journal.trimmed, again.journal.durable]).toEqual([4, 5]);
    },
  );

  it("J18 a directory that cannot be synced fails the journal closed; all is kept", async () => {
    const disk = new MemoryDisk();
    const opened = await open(disk);
    await fill(opened, 5);
    opened.journal.trim(lsn(2));
    await settle(20);
    disk.observer = failing((call) => call.name === "syncDirectory", "EIO", 1);
    opened.journal.trim(lsn(4));
    await settle(20);
    expect(opened.failures).toHaveLength(1);
    expect(segmentsOf(disk)).toEqual([2, 3, 4]);
    await opened.journal.close();
    const again = await open(disk.crash(seededRandom(1), 0));
    expect(again.journal.durable).toBe(5);
  });

  it("J29 a journal that failed closed trims no more", async () => {
    const disk = new MemoryDisk();
    const opened = await open(disk);
    await fill(opened, 5);
    disk.observer = failing((call) => call.name === "write", "EIO");
    opened.journal.append([entry(6)]);
    await settle();
    disk.observer = undefined;
    opened.journal.trim(lsn(4));
    await settle(20);
    await opened.journal.close();
    expect(segmentsOf(disk)).toEqual([1, 2, 3]);
    expect([...disk.files().keys()]).not.toContain(watermark);
  });
});

describe("recovery table: trim", () => {
  async function trimmedTo(mark: number, count: number): Promise<MemoryDisk> {
    const disk = new MemoryDisk();
    const opened = await open(disk);
    await fill(opened, count);
    opened.journal.trim(lsn(mark));
    await settle(20);
    return disk;
  }

  it("segments below the head, left by a crash between manifest and recycling: recycled", async () => {
    const disk = new MemoryDisk();
    const opened = await open(disk);
    await fill(opened, 5);
    disk.observer = failing((call) => call.name === "rename" && call.path === segment(1), "EIO");
    opened.journal.trim(lsn(4));
    await settle(20);
    const crashed = disk.crash(seededRandom(1), 0);
    expect(segmentsOf(crashed)).toEqual([1, 2, 3]);
    const again = await open(crashed);
    expect(again.findings).toMatchObject({ belowHead: 2, sealed: 0 });
    expect([again.firstLsn, again.journal.trimmed]).toEqual([5, 4]);
    await settle(20);
    expect(segmentsOf(crashed)).toEqual([3, 4, 5]);
    expect(again.journal.stats()).toMatchObject({ segments: 3, spares: 2 });
  });

  it("a crash between watermark and manifest: the watermark counts, and the manifest catches up", async () => {
    const disk = new MemoryDisk();
    const opened = await open(disk);
    await fill(opened, 5);
    disk.observer = failing((call) => call.name === "write" && /manifest/.test(call.path), "EIO");
    opened.journal.trim(lsn(4));
    await settle(20);
    const crashed = disk.crash(seededRandom(1), 0);
    const again = await open(crashed);
    expect(again.findings).toMatchObject({ belowHead: 2 });
    expect(again.firstLsn).toBe(5);
    await settle(20);
    expect(segmentsOf(crashed)).toEqual([3, 4, 5]);
    expect((await open(crashed.crash(seededRandom(2), 0))).firstLsn).toBe(5);
  });

  it("J14 a torn newest watermark record costs a second replay, never an entry", async () => {
    const files = snapshot(await trimmedTo(4, 5));
    const disk = await diskOf(files);
    const opened = await open(disk);
    await fill(opened, 2);
    opened.journal.trim(lsn(6));
    await settle(20);
    const torn = snapshot(disk);
    const bytes = torn.get(watermark) ?? new Uint8Array(0);
    expect(bytes[4096 + 24]).toBe(6);
    bytes.fill(255, 4096, 4096 + 30);
    const again = await open(await diskOf(torn));
    expect(again.firstLsn).toBe(7);
    expect(again.journal.trimmed).toBe(4);
    expect(marks(again.replayed)).toEqual(numbered(7, 7));
  });

  it.each([
    ["of the wrong size", (bytes: Uint8Array) => bytes.slice(0, 100)],
    ["without a valid record", (bytes: Uint8Array) => bytes.map((byte) => byte ^ 1)],
  ])("J14 a watermark %s is kept as .corrupt and counts as absent", async (_what, change) => {
    const files = snapshot(await trimmedTo(4, 5));
    const changed = change(files.get(watermark) ?? new Uint8Array(0));
    files.set(watermark, changed);
    files.set(`${watermark}.corrupt`, entry(1, 7));
    const disk = await diskOf(files);
    const opened = await open(disk);
    expect([opened.firstLsn, opened.journal.trimmed, opened.journal.durable]).toEqual([5, 0, 5]);
    const after = disk.files();
    expect(after.get(`${watermark}.corrupt`)).toEqual(entry(1, 7));
    expect(after.get(`${watermark}.corrupt.2`)).toEqual(changed);
    expect(after.get(watermark)).toHaveLength(8192);
    opened.journal.trim(lsn(5));
    await opened.journal.close();
    expect((await open(disk)).journal.trimmed).toBe(5);
  });

  it("a watermark past the end is corruption, not truth: refused, nothing changed", async () => {
    const long = snapshot(await trimmedTo(10, 11));
    const short = snapshot(await trimmedTo(2, 3));
    short.set(watermark, long.get(watermark) ?? new Uint8Array(0));
    const disk = await diskOf(short);
    const error = await openRefusal(disk);
    expect(error.code).toBe("journal_corrupt");
    expect(error.message).toContain("nothing was changed");
    expect(snapshot(disk)).toEqual(short);
  });

  it("the first segment held without its first batch: refused", async () => {
    const files = snapshot(await trimmedTo(4, 5));
    files.get(segment(3))?.fill(0, 4096);
    const error = await openRefusal(await diskOf(files));
    expect(error.code).toBe("journal_corrupt");
    expect(error.message).toContain(`${segment(3)}: the first segment held has no batch`);
  });

  it("J23 each life of a segment file has a salt of its own", async () => {
    const disk = new MemoryDisk();
    const opened = await open(disk);
    const salts = new Map<number, number>();
    for (let round = 0; round < 6; round++) {
      await fill(opened, 2);
      opened.journal.trim(opened.journal.durable);
      await settle(20);
      for (const generation of segmentsOf(disk)) {
        const bytes = disk.files().get(segment(generation)) ?? new Uint8Array(64);
        salts.set(generation, new DataView(bytes.buffer, bytes.byteOffset).getUint32(60, true));
      }
    }
    expect(salts.size).toBeGreaterThanOrEqual(7);
    expect(new Set(salts.values()).size).toBe(salts.size);
  });

  it("J23 what a recycled segment held before is never decoded, at whatever place the chain ends", async () => {
    let disk = new MemoryDisk();
    let count = 0;
    for (let life = 0; life < 12; life++) {
      const opened = await open(disk);
      expect(opened.journal.durable).toBe(count);
      await fill(opened, 3);
      count += 3;
      opened.journal.trim(lsn(count - 2));
      await settle(20);
      disk = disk.crash(seededRandom(life), 0);
    }
    const stale = [...disk.files().values()].filter((bytes) => bytes[3 * 4096] !== 0);
    expect(stale.length).toBeGreaterThan(0);
  });
});

describe("J16 the manager of the segments", () => {
  it("wakes for a segment that fills up, a trim, a retry, and sleeps otherwise", async () => {
    const disk = new MemoryDisk();
    const opened = await open(disk);
    let calls = 0;
    const count = async (work: () => void | Promise<void>): Promise<number> => {
      calls = 0;
      await work();
      await settle(20);
      return calls;
    };
    disk.observer = (call) => {
      const own = call.name === "rename" || call.name === "unlink";
      calls += own ? 1 : 0;
      return undefined;
    };
    expect(await count(() => fill(opened, 1))).toBe(0);
    expect(await count(() => fill(opened, 1))).toBe(1);
    expect(await count(() => fill(opened, 1))).toBe(0);
    opened.clock.advance(100_000);
    expect(await count(settle)).toBe(0);
    disk.observer = failing((call) => call.name === "write" && /watermark/.test(call.path), "EIO");
    opened.journal.trim(lsn(2));
    await settle(20);
    expect(segmentsOf(disk)).toEqual([1, 2]);
    disk.observer = undefined;
    opened.clock.advance(4);
    await settle(20);
    expect(segmentsOf(disk)).toEqual([2, 3]);
    expect(opened.clock.armed.size).toBe(0);
  });
});

it("J35 the causes of a wake that the manager's description names are there, and there are no others", () => {
  const dir = new URL("../../../origin/journal/", import.meta.url);
  const sources = readdirSync(dir)
    .filter((name) => name.endsWith(".ts"))
    .map((name) => readFileSync(new URL(name, dir), "utf8"));
  const manager = readFileSync(new URL("manager.ts", dir), "utf8");
  const named = [...manager.matchAll(/`(\w+)\.(\w+)`/g)].map(([, owner, member]) => ({
    owner: owner ?? "",
    member: member ?? "",
  }));
  expect(named).toHaveLength(7);
  for (const { owner, member } of named) {
    const source = sources.find((text) => text.includes(`export class ${owner} `));
    expect(source, `${owner}.${member}`).toMatch(
      new RegExp(`^  (?:async )?(?:set )?#?${member}\\(`, "m"),
    );
  }
  // One call each, and the two that pass it on inside the ring.
  const calls = sources.join("\n").match(/\.wake\(\)/g) ?? [];
  expect(calls).toHaveLength(named.length - 1 + 1);
});

it("J20 a full disk is told at most every 30 s, and the end of it once", async () => {
  const disk = new MemoryDisk({ capacityBytes: 33 * KiB });
  const opened = await open(disk);
  await fill(opened, 2);
  expect(opened.shortages).toHaveLength(1);
  const look = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 2000) {
      opened.clock.advance(2000);
      expect(() => opened.journal.append([entry(3, 3000)])).toThrow("16384");
      await settle();
    }
  };
  await look(28_000);
  expect(opened.shortages).toHaveLength(1);
  await look(4000);
  expect(opened.shortages).toHaveLength(2);
  disk.capacityBytes = 50 * KiB;
  await look(2000);
  expect(opened.shortages.slice(2)).toEqual([null]);
  // Full again within the 30 s: nothing new to tell.
  await fill(opened, 2);
  expect(opened.journal.stats().full).not.toBeNull();
  expect(opened.shortages).toHaveLength(3);
});
