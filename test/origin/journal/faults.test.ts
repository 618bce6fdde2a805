import { describe, expect, it } from "vitest";
import { MemoryDisk, type DiskCall } from "../../../origin/storage/mod.ts";
import type { ForebayError } from "../../../shared/errors/mod.ts";
import { ManualClock } from "../manualClock.ts";
import { seededRandom } from "../seededRandom.ts";
import {
  drive,
  entry,
  KiB,
  marks,
  open,
  openRefusal,
  refusal,
  settle,
  shardDir,
  snapshot,
} from "./harness.ts";

/** Fails calls of one kind, from now on or for the next `times`. */
function failing(name: DiskCall["name"], code: string, times = Infinity) {
  let left = times;
  return (call: DiskCall): string | undefined =>
    call.name === name && left-- > 0 ? code : undefined;
}

const model = (count: number, length: number): string[] =>
  marks(Array.from({ length: count }, (_, i) => entry(i + 1, length)));

describe("J18 a failed write or sync", () => {
  it.each([
    ["write", true],
    ["write", false],
    ["sync", false],
  ] as const)(
    "%s (direct %s) fails the journal closed, once, with the reason",
    async (name, direct) => {
      const disk = new MemoryDisk({ direct });
      const { journal, failures, advances } = await open(disk);
      journal.append([entry(1)]);
      await journal.flush();
      disk.observer = failing(name, "EIO");
      journal.append([entry(2)]);
      const flushed = journal.flush().catch((error: unknown) => error);
      await settle();
      disk.observer = undefined;
      const refused = refusal(() => journal.append([entry(3)]));
      expect(refused.code).toBe("journal_failed");
      expect(refused.message).toMatch(/^the journal failed closed: EIO: /);
      expect(await flushed).toBe(failures[0]);
      expect(await journal.flush().catch((error: unknown) => error)).toBe(failures[0]);
      expect(failures).toHaveLength(1);
      expect(advances).toEqual([1]);
      expect(journal.stats().failed).toBe(refused.message);
      expect([journal.reserved, journal.durable]).toEqual([2, 1]);
      await settle();
      await journal.close();
      expect(advances).toEqual([1]);
      const replayed = marks((await open(disk.crash(seededRandom(1), 0))).replayed);
      expect(replayed).toEqual(model(1, 100));
    },
  );

  it("J26 nothing behind a failed batch is acknowledged, though it reached the disk", async () => {
    const disk = new MemoryDisk({ stepped: true });
    const { journal, failures, advances } = await drive(
      disk,
      open(disk, { segmentBytes: 256 * KiB }),
    );
    journal.append([entry(1, 20 * KiB)]);
    await settle();
    disk.observer = failing("write", "EIO", 1);
    journal.append([entry(2, 20 * KiB)]);
    await settle();
    journal.append([entry(3, 20 * KiB)]);
    await settle();
    // Staged and never submitted.
    journal.append([entry(4, 100)]);
    await settle();
    expect(disk.waiting.map(({ call }) => call.position)).toEqual([4096, 28672, 53248]);
    const [first, second, third] = disk.waiting;
    third?.release();
    await settle();
    expect(advances).toEqual([]);
    second?.release();
    await settle();
    expect(failures).toHaveLength(1);
    first?.release();
    await settle();
    expect(advances).toEqual([]);
    expect(disk.waiting).toEqual([]);
    await drive(disk, journal.close());
    const { replayed } = await open(disk.crash(seededRandom(1), 0), { segmentBytes: 256 * KiB });
    expect(marks(replayed)).toEqual(model(1, 20 * KiB));
  });

  it.each(["open", "write", "sync", "rename", "syncDirectory", "stat", "space"] as const)(
    "of a segment being prepared (%s) fails it too; all acknowledged is kept",
    async (name) => {
      const disk = new MemoryDisk();
      const { journal, failures } = await open(disk);
      journal.append([entry(1, 3000)]);
      await journal.flush();
      journal.append([entry(2, 3000)]);
      disk.observer = (call) =>
        call.name === name && !call.path.endsWith("01.segment") ? "EIO" : undefined;
      await settle(20);
      expect(failures.map((error) => (error as ForebayError).code)).toEqual(["journal_failed"]);
      disk.observer = undefined;
      await journal.close();
      expect([...disk.files().keys()].filter((path) => path.endsWith(".new"))).toEqual([]);
      expect(marks((await open(disk.crash(seededRandom(1), 0))).replayed)).toEqual(model(2, 3000));
    },
  );

  it("short writes and reads are gone on with, without a torn batch", async () => {
    const disk = new MemoryDisk();
    disk.observer = (call) => (call.bytes > 4096 ? "short" : undefined);
    const { journal } = await open(disk, { segmentBytes: 64 * KiB });
    journal.append([entry(1, 30_000)]);
    journal.append([entry(2, 30_000)]);
    await journal.flush();
    const again = await open(disk.crash(seededRandom(1), 0), { segmentBytes: 64 * KiB });
    expect(marks(again.replayed)).toEqual(model(2, 30_000));
  });

  it("a write that makes no progress is an error, not a loop", async () => {
    const disk = new MemoryDisk();
    const { journal, failures } = await open(disk);
    disk.observer = failing("write", "short");
    journal.append([entry(1)]);
    await settle();
    expect(failures[0]?.message).toContain("makes no progress");
  });
});

describe("the manifest at a rotation", () => {
  const isManifest = (call: DiskCall): boolean => call.path.startsWith(`${shardDir}/manifest`);

  it.each(["write", "sync"] as const)(
    "J14 a failed %s is repeated as a whole on the same record, and the journal goes on",
    async (name) => {
      const disk = new MemoryDisk();
      const { journal, failures } = await open(disk);
      const calls: string[] = [];
      let left = 2;
      disk.observer = (call) => {
        if (isManifest(call)) {
          calls.push(`${call.name} ${call.position}`);
          return call.name === name && left-- > 0 ? "EIO" : undefined;
        }
        return undefined;
      };
      for (let i = 1; i <= 3; i++) {
        journal.append([entry(i, 3000)]);
        await journal.flush();
      }
      const once = name === "write" ? ["write 0"] : ["write 0", "sync 0"];
      expect(calls).toEqual([...once, ...once, "write 0", "sync 0"]);
      expect(failures).toEqual([]);
      expect(marks((await open(disk.crash(seededRandom(1), 0))).replayed)).toEqual(model(3, 3000));
    },
  );

  it("J9 three failures fail it closed; nothing has moved, the spare is still one segment", async () => {
    const disk = new MemoryDisk();
    const { journal, failures } = await open(disk);
    for (let i = 1; i <= 2; i++) {
      journal.append([entry(i, 3000)]);
      await journal.flush();
    }
    await settle(20);
    expect(journal.stats().segments).toBe(2);
    disk.observer = (call) => (isManifest(call) && call.name === "write" ? "EIO" : undefined);
    journal.append([entry(3, 3000)]);
    await settle(20);
    expect(failures).toHaveLength(1);
    expect(journal.stats().segments).toBe(2);
    disk.observer = undefined;
    const { journal: again, replayed } = await open(disk.crash(seededRandom(1), 0));
    expect(marks(replayed)).toEqual(model(2, 3000));
    expect(again.stats().segments).toBe(2);
  });
});

describe("J20 no space", () => {
  it("the budget is used up: 507 with both numbers, nothing taken, smaller entries still fit", async () => {
    const disk = new MemoryDisk();
    const { journal, clock } = await open(disk, { budgetBytes: 32 * KiB });
    for (let i = 1; i <= 3; i++) {
      journal.append([entry(i, 3000)]);
      await journal.flush();
    }
    const refused = refusal(() => journal.append([entry(4, 5000)]));
    expect([refused.code, refused.status]).toEqual(["disk_full", 507]);
    expect(refused.message).toBe(
      "the journal holds 32768 of its budget of 32768 bytes, which leaves no room for a segment of 16384",
    );
    expect(journal.reserved).toBe(3);
    expect(journal.append([entry(4, 3000)])).toBe(4);
    expect(refusal(() => journal.append([entry(5, 3000)])).code).toBe("disk_full");
    await journal.flush();
    expect(journal.stats()).toMatchObject({ segments: 2, bytesHeld: 32 * KiB, failed: null });
    expect(clock.armed.size).toBe(0);
    await journal.close();
    const larger = await open(disk, { budgetBytes: 64 * KiB });
    expect(marks(larger.replayed)).toEqual(model(4, 3000));
    expect(larger.journal.append([entry(5, 3000)])).toBe(5);
    await larger.journal.close();
  });

  it("the disk is full: 507 with both numbers, no half file, and appends resume by themselves", async () => {
    // Room for the manifest and one and a half segments.
    const disk = new MemoryDisk({ capacityBytes: 33 * KiB });
    const { journal, clock, failures } = await open(disk);
    for (let i = 1; i <= 2; i++) {
      journal.append([entry(i, 3000)]);
      await journal.flush();
    }
    await settle(20);
    expect(journal.stats().full).toBe(
      `a journal segment takes 16384 bytes, the file system of ${shardDir} has 9216 free`,
    );
    const refused = refusal(() => journal.append([entry(3, 3000)]));
    expect([refused.code, refused.message]).toEqual(["disk_full", journal.stats().full]);
    expect(journal.reserved).toBe(2);
    expect(clock.armed.size).toBe(0);
    expect([...disk.files().keys()]).toHaveLength(2);

    disk.capacityBytes = 64 * KiB;
    clock.advance(4);
    // This one is still refused, but it made the journal look again.
    expect(refusal(() => journal.append([entry(3, 3000)])).code).toBe("disk_full");
    await settle(20);
    expect(journal.stats().full).toBeNull();
    expect(journal.append([entry(3, 3000)])).toBe(3);
    await journal.flush();
    expect(failures).toEqual([]);
    await journal.close();
    expect(marks((await open(disk)).replayed)).toEqual(model(3, 3000));
  });

  it("looks again 4 ms later, then doubling to 1.024 s, and never without an append", async () => {
    const disk = new MemoryDisk({ capacityBytes: 33 * KiB });
    const { journal, clock } = await open(disk);
    journal.append([entry(1, 3000)]);
    await journal.flush();
    journal.append([entry(2, 3000)]);
    await settle(20);
    const waits: number[] = [];
    let looks = 0;
    disk.observer = (call) => {
      looks += call.name === "space" ? 1 : 0;
      return undefined;
    };
    let waited = 0;
    while (waits.length < 10) {
      expect(refusal(() => journal.append([entry(3, 3000)])).code).toBe("disk_full");
      await settle(3);
      if (looks === 1) {
        waits.push(waited);
        waited = 0;
        looks = 0;
      }
      clock.advance(4);
      waited += 4;
    }
    expect(waits).toEqual([4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024]);
    clock.advance(10_000);
    await settle();
    expect(looks).toBe(0);
  });

  it("entries taken before it was known wait, are not lost, and go on when there is space", async () => {
    const disk = new MemoryDisk({ stepped: true, capacityBytes: 33 * KiB });
    const { journal, clock, advances, failures } = await drive(disk, open(disk));
    // One turn fills the segment and plans into the next two before anyone looked at the disk.
    for (const [i, length] of [3000, 3000, 3000, 6000].entries()) {
      journal.append([entry(i + 1, length)]);
    }
    await drive(disk, settle(60));
    expect(advances.at(-1)).toBe(2);
    expect(journal.reserved).toBe(4);
    // It would fit into the batch that waits, but that one has no place either.
    expect(refusal(() => journal.append([entry(5)])).code).toBe("disk_full");
    expect(clock.armed.size).toBe(1);
    disk.capacityBytes = 96 * KiB;
    clock.advance(4);
    await drive(disk, settle(120));
    expect(advances.at(-1)).toBe(4);
    expect(clock.armed.size).toBe(0);
    journal.append([entry(5)]);
    await drive(disk, journal.close());
    expect(failures).toEqual([]);
    const expected = [3000, 3000, 3000, 6000, 100].map((length, i) => entry(i + 1, length));
    const { replayed } = await open(disk.crash(seededRandom(1), 0));
    expect(marks(replayed)).toEqual(marks(expected));
  });

  it("J29 close does not wait for space: what waits is told as unknown, the rest is kept", async () => {
    const disk = new MemoryDisk({ stepped: true, capacityBytes: 33 * KiB });
    const { journal, clock, failures } = await drive(disk, open(disk));
    for (let i = 1; i <= 3; i++) {
      journal.append([entry(i, 3000)]);
    }
    const flushed = journal.flush().catch((error: unknown) => error);
    await drive(disk, settle(60));
    await drive(disk, journal.close());
    expect(await flushed).toBe(failures[0]);
    expect(failures[0]?.message).toContain("a journal segment takes 16384 bytes");
    expect(clock.armed.size).toBe(0);
    expect(marks((await open(disk.crash(seededRandom(1), 0))).replayed)).toEqual(model(2, 3000));
  });

  it("ENOSPC in the middle of the fill leaves no file behind", async () => {
    const disk = new MemoryDisk();
    const { journal } = await open(disk);
    disk.observer = (call) =>
      call.name === "write" && call.path.endsWith(".new") ? "ENOSPC" : undefined;
    for (let i = 1; i <= 2; i++) {
      journal.append([entry(i, 3000)]);
      await journal.flush();
    }
    await settle(20);
    expect(journal.stats()).toMatchObject({ segments: 1, failed: null });
    expect(journal.stats().full).not.toBeNull();
    expect([...disk.files().keys()]).toHaveLength(2);
  });

  it("ENOSPC from the directory's sync is a failure: the segment has its name already", async () => {
    const disk = new MemoryDisk();
    const { journal, failures } = await open(disk);
    disk.observer = failing("syncDirectory", "ENOSPC");
    for (let i = 1; i <= 2; i++) {
      journal.append([entry(i, 3000)]);
      await journal.flush();
    }
    await settle(20);
    expect(failures).toHaveLength(1);
    expect(marks((await open(disk.crash(seededRandom(1), 0))).replayed)).toEqual(model(2, 3000));
  });

  it("a start that needs a segment says disk_full; one that does not works on the full disk", async () => {
    const tiny = await openRefusal(new MemoryDisk({ capacityBytes: 10 * KiB }));
    expect([tiny.code, tiny.message]).toEqual([
      "disk_full",
      `a journal segment takes 16384 bytes, the file system of ${shardDir} has 2048 free`,
    ]);
    const disk = new MemoryDisk();
    const sizes = { segmentBytes: 64 * KiB };
    const first = await open(disk, sizes);
    first.journal.append([entry(1)]);
    await first.journal.close();
    disk.capacityBytes = 72 * KiB;
    const { journal, replayed } = await open(disk, sizes);
    expect(replayed).toHaveLength(1);
    journal.append([entry(2)]);
    await journal.flush();
    expect(journal.durable).toBe(2);
  });
});

describe("a start that cannot work", () => {
  it.each(["EACCES", "EROFS"])("%s: data_unwritable, and the lock is free again", async (code) => {
    const disk = new MemoryDisk();
    disk.observer = failing("mkdir", code, 1);
    const error = await openRefusal(disk);
    expect([error.code, error.message]).toEqual([
      "data_unwritable",
      `/data cannot be written: ${code}: mkdir /data (injected)`,
    ]);
    disk.observer = (call) => (call.path.endsWith("manifest.new") ? code : undefined);
    expect((await openRefusal(disk)).code).toBe("data_unwritable");
    disk.observer = undefined;
    await (await open(disk)).journal.close();
  });

  it.each(["open", "read", "stat", "list", "size", "sync", "syncDirectory", "lock"] as const)(
    "J19 an operational error (%s: EIO) stops it with every byte untouched",
    async (name) => {
      const disk = new MemoryDisk();
      const first = await open(disk);
      first.journal.append([entry(1)]);
      await first.journal.close();
      const before = snapshot(disk);
      disk.observer = failing(name, "EIO");
      const error = await openRefusal(disk);
      expect(error.code).toBe("journal_failed");
      expect(error.message).toMatch(/^the journal in \/data cannot be opened: EIO: /);
      expect(snapshot(disk)).toEqual(before);
      disk.observer = undefined;
      expect((await open(disk)).replayed).toHaveLength(1);
    },
  );

  it("J22 a second opener of the directory is refused", async () => {
    const disk = new MemoryDisk();
    const { journal } = await open(disk);
    const error = await openRefusal(disk);
    expect([error.code, error.message]).toEqual([
      "data_locked",
      `/data is in use by process ${process.pid} (waited 5000 ms)`,
    ]);
    await journal.close();
    await (await open(disk)).journal.close();
  });

  it("an error of the owner's replay passes as it is, and frees the lock", async () => {
    const disk = new MemoryDisk();
    const first = await open(disk);
    first.journal.append([entry(1)]);
    await first.journal.close();
    const { openJournal } = await import("../../../origin/journal/mod.ts");
    const boom = new TypeError("replay broke");
    const opening = openJournal(
      {
        dir: "/data",
        disk,
        clock: new ManualClock(),
        random: seededRandom(1),
        segmentBytes: 16 * KiB,
        budgetBytes: 64 * KiB,
        events: { onDurable: () => undefined, onFailed: () => undefined },
      },
      () => {
        throw boom;
      },
    );
    expect(await opening.catch((error: unknown) => error)).toBe(boom);
    await (await open(disk)).journal.close();
  });
});
