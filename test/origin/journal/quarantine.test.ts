import { beforeEach, describe, expect, it } from "vitest";
import {
  listQuarantine,
  missingRanges,
  openJournal,
  readableRanges,
  restoreQuarantined,
  surveyJournal,
  verifyJournal,
} from "../../../origin/journal/mod.ts";
import type { MemoryDisk } from "../../../origin/storage/mod.ts";
import { MemoryDisk as Disk } from "../../../origin/storage/mod.ts";
import type { ForebayError } from "../../../shared/errors/mod.ts";
import { lsn } from "../../../shared/ids/mod.ts";
import { ManualClock } from "../manualClock.ts";
import { seededRandom } from "../seededRandom.ts";
import { diskOf, entry, KiB, marks, open, settle, shardDir, snapshot } from "./harness.ts";

const journals = "/data/journal";
const segment = (generation: number, dir = shardDir): string =>
  `${dir}/000000000000000${generation}.segment`;

/** Six entries in three segments, the fourth a spare; then one block of `generation` is damaged. */
async function damagedAt(generation: number, at: number): Promise<MemoryDisk> {
  const disk = new Disk();
  const { journal } = await open(disk);
  for (let i = 1; i <= 6; i++) {
    journal.append([entry(i, 3000)]);
    await journal.flush();
  }
  await settle();
  const files = snapshot(disk);
  const bytes = files.get(segment(generation)) ?? new Uint8Array(0);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return diskOf(files);
}

async function openSettingAside(disk: MemoryDisk) {
  const messages: string[] = [];
  const replayed: Uint8Array[] = [];
  const journal = await openJournal(
    {
      ...{ dir: "/data", disk, clock: new ManualClock(), random: seededRandom(5) },
      ...{ segmentBytes: 16 * KiB, budgetBytes: 1024 * KiB, onDamage: "quarantine" },
      events: { onDurable: () => undefined, onFailed: () => undefined },
      onQuarantined: (message) => messages.push(message),
    },
    (_lsn, bytes) => replayed.push(bytes.slice()),
  );
  return { journal, messages, replayed };
}

describe("a damaged journal, when it is to be set aside", () => {
  let disk: MemoryDisk;
  let before: Map<string, Uint8Array>;
  beforeEach(async () => {
    disk = await damagedAt(2, 4096 + 100);
    before = snapshot(disk);
  });

  it("lies under another name with every byte, and the message says exactly what is lost", async () => {
    const id = (await surveyJournal(disk, shardDir)).id;
    const { journal, messages, replayed } = await openSettingAside(disk);
    expect(messages).toEqual([
      `the damaged journal ${shardDir} was set aside as ${journals}/0.quarantine-1, every byte kept. ` +
        `${segment(2)}: the chain ends before SEAL at offset 4096: expected payload CRC ${messages[0]?.match(/payload CRC (\S+) over/)?.[1]} over 3004 bytes, found ${messages[0]?.match(/bytes, found (0x\w+)/)?.[1]}. ` +
        "It holds the entries 1–2, 4–6; 3 cannot be read; entries up to 0 were trimmed. None of them is served until it is restored",
    ]);
    expect(replayed).toEqual([]);
    expect([journal.reserved, journal.durable]).toEqual([0, 0]);
    expect(journal.id).not.toBe(id);
    const after = disk.files();
    for (const [path, bytes] of before) {
      const moved = path.replace(shardDir, `${journals}/0.quarantine-1`);
      expect(marks([after.get(moved) ?? new Uint8Array(0)])).toEqual(marks([bytes]));
    }
    // It survives a crash right after the start.
    const names = await disk.crash(seededRandom(1), 0).list(journals);
    expect(names).toEqual(["0", "0.quarantine-1"]);
  });

  it("is refused by default, and for any other reason than damage", async () => {
    const refused = await open(disk).catch((error: unknown) => error as ForebayError);
    expect(refused).toMatchObject({ code: "journal_corrupt" });
    disk.observer = (call) => (call.name === "read" ? "EIO" : undefined);
    const failed = await openSettingAside(disk).catch((error: unknown) => error as ForebayError);
    expect(failed).toMatchObject({ code: "journal_failed" });
    disk.observer = undefined;
    expect(await listQuarantine(disk, journals)).toEqual([]);
    expect(snapshot(disk)).toEqual(before);
  });

  it("a crash at any call of it loses nothing: the next start finds the old journal or the new one", async () => {
    let calls = 0;
    disk.observer = () => {
      calls += 1;
      return undefined;
    };
    await openSettingAside(disk);
    for (let n = 1; n <= calls; n++) {
      const again = await diskOf(before);
      let seen = 0;
      again.observer = () => (++seen >= n ? "EIO" : undefined);
      await openSettingAside(again).catch(() => undefined);
      for (const survival of [0, 1]) {
        const image = again.crash(seededRandom(n), survival);
        const names = (await image.list(journals)).filter((name) => name.includes("quarantine"));
        const { journal } = await openSettingAside(image);
        expect(journal.durable).toBe(0);
        const [aside] = await listQuarantine(image, journals);
        expect(await listQuarantine(image, journals)).toHaveLength(1);
        expect(names.length).toBeLessThanOrEqual(1);
        const survey = await surveyJournal(image, `${journals}/${aside}`);
        expect(readableRanges(survey)).toEqual([
          [1, 2],
          [4, 6],
        ]);
      }
    }
    expect(calls).toBeGreaterThan(40);
  });

  it("comes back when it was repaired; what was begun meanwhile is set aside in turn", async () => {
    const { journal } = await openSettingAside(disk);
    journal.append([entry(50)]);
    await journal.close();
    const still = await restoreQuarantined(disk, journals, "0.quarantine-1").catch(
      (error: unknown) => error as ForebayError,
    );
    expect(still).toMatchObject({ code: "journal_corrupt" });
    expect(await disk.list(journals)).toEqual(["0", "0.quarantine-1"]);
    const file = await disk.open(segment(2, `${journals}/0.quarantine-1`), "update");
    const byte = new Uint8Array(1);
    await file.read(byte, 4096 + 100);
    await file.write(Uint8Array.of((byte[0] ?? 0) ^ 1), 4096 + 100);
    await file.sync();
    await file.close();
    expect(await restoreQuarantined(disk, journals, "0.quarantine-1")).toEqual({
      shard: "0",
      replaced: "0.quarantine-2",
    });
    expect(await disk.list(journals)).toEqual(["0", "0.quarantine-2"]);
    expect(await disk.crash(seededRandom(1), 0).list(journals)).toEqual(["0", "0.quarantine-2"]);
    const restored = await open(disk);
    expect(marks(restored.replayed)).toEqual(marks([1, 2, 3, 4, 5, 6].map((n) => entry(n, 3000))));
    await restored.journal.close();
    expect(await restoreQuarantined(disk, journals, "0.quarantine-2")).toEqual({
      shard: "0",
      replaced: "0.quarantine-3",
    });
    expect(marks((await open(disk)).replayed)).toEqual(marks([entry(50)]));
  });

  it("a name that is not there is refused with those that are", async () => {
    await openSettingAside(disk);
    for (const name of ["0", "../x", "0.quarantine-7", "0.quarantine-1/.."]) {
      const error = await restoreQuarantined(disk, journals, name).catch(
        (reason: unknown) => reason as ForebayError,
      );
      expect(error).toMatchObject({
        code: "config_invalid",
        message: `there is no ${JSON.stringify(name)} in ${journals}; set aside are: 0.quarantine-1`,
      });
    }
  });
});

describe("what cannot be read", () => {
  it.each([
    ["the first batch of a sealed segment", 1, 4096 + 9, [[2, 6]], [[1, 1]]],
    [
      "an attested batch of the active segment",
      3,
      4096 + 9,
      [
        [1, 4],
        [6, 6],
      ],
      [[5, 5]],
    ],
    [
      "a segment's header",
      2,
      20,
      [
        [1, 2],
        [5, 6],
      ],
      [[3, 4]],
    ],
  ])("%s", async (_what, generation, at, readable, missing) => {
    const disk = await damagedAt(generation, at);
    const survey = await surveyJournal(disk, shardDir);
    expect(readableRanges(survey)).toEqual(readable);
    expect(missingRanges(survey)).toEqual(missing);
    await expect(verifyJournal(disk, shardDir)).rejects.toMatchObject({ code: "journal_corrupt" });
  });

  it("a whole journal: nothing; trimmed entries do not count", async () => {
    const disk = new Disk();
    const { journal } = await open(disk);
    for (let i = 1; i <= 7; i++) {
      journal.append([entry(i, 3000)]);
      await journal.flush();
    }
    journal.trim(lsn(4));
    await settle(20);
    const survey = await surveyJournal(disk, shardDir);
    expect(survey).toMatchObject({ head: 3, active: 4, trimmed: 4, manifestDamage: null });
    expect(survey.segments.map(({ generation, state }) => `${generation} ${state}`)).toEqual([
      "3 sealed",
      "4 active",
      "5 spare",
      "6 spare",
    ]);
    expect(readableRanges(survey)).toEqual([[5, 7]]);
    expect(missingRanges(survey)).toEqual([]);
    expect(await verifyJournal(disk, shardDir)).toMatchObject({
      lastLsn: 7,
      trimmed: 4,
      entries: 3,
    });
  });
});

it("J21 another count of shards is refused with both numbers", async () => {
  const disk = new Disk();
  await (await open(disk)).journal.close();
  await disk.mkdir("/data/journal/1");
  const error = await open(disk).catch((reason: unknown) => reason as ForebayError);
  expect(error).toMatchObject({
    code: "config_invalid",
    message:
      "/data/journal holds 2 shards, configured is 1; a data directory keeps the count it was made with",
  });
});
