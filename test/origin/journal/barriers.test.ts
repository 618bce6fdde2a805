import { expect, it } from "vitest";
import { MemoryDisk } from "../../../origin/storage/mod.ts";
import { drive, entry, open, recorded, settle } from "./harness.ts";

const preparation = (generation: number): string[] => [
  `open ${generation}.segment.new create`,
  `write ${generation}.segment.new 0+16384`,
  `write ${generation}.segment.new 0+4096`,
  `sync ${generation}.segment.new`,
  `rename ${generation}.segment.new ${generation}.segment`,
  "syncDirectory /data/journal/0",
];

const probing = [
  "open probe create",
  "write probe 0+4096",
  "open probe commit",
  "write probe 0+4096",
  "unlink probe",
];

it("create: directories, manifest, segment, manifest; each durable before the next", async () => {
  const disk = new MemoryDisk();
  const log = recorded(disk);
  const { journal } = await open(disk);
  expect(log).toEqual([
    "mkdir /data",
    "syncDirectory /",
    "lock /data",
    "mkdir /data/journal",
    "syncDirectory /data",
    "mkdir /data/journal/0",
    "syncDirectory /data/journal",
    "syncDirectory /data/journal",
    "syncDirectory /data",
    "syncDirectory /",
    "open manifest.new create",
    "write manifest.new 0+8192",
    "sync manifest.new",
    "rename manifest.new manifest",
    "syncDirectory /data/journal/0",
    ...probing,
    ...preparation(1),
    "open 1.segment commit",
    "write manifest.new 4096+64",
    "sync manifest.new",
  ]);
  // Manifest twice, its directory; the segment and its directory.
  expect(journal.stats()).toMatchObject({
    syncs: 5,
    bytesWritten: 8192 + 16384 + 4096 + 64,
    batches: 0,
  });
});

it("J32 reopen: everything read is synced before the journal is served, nothing else is written", async () => {
  const disk = new MemoryDisk();
  const first = await open(disk, { segmentBytes: 32768 });
  for (let i = 1; i <= 7; i++) {
    first.journal.append([entry(i, 3000)]);
    await first.journal.flush();
  }
  await first.journal.close();
  const log = recorded(disk);
  const { journal } = await open(disk, { segmentBytes: 32768 });
  expect(log).toEqual([
    "lock /data",
    "syncDirectory /data/journal",
    "syncDirectory /data",
    "syncDirectory /",
    "sync 1.segment",
    "sync 2.segment",
    "sync manifest",
    "syncDirectory /data/journal/0",
    ...probing,
    "open 2.segment commit",
  ]);
  expect(journal.stats()).toMatchObject({ syncs: 4, bytesWritten: 0 });
});

it("J11 J12 rotate: batches durable, SEAL, manifest, then the first batch of the new segment", async () => {
  const disk = new MemoryDisk({ stepped: true });
  const { journal } = await drive(disk, open(disk));
  const log = recorded(disk);
  journal.append([entry(1, 3000)]);
  await drive(disk, journal.flush());
  expect(log.splice(0)).toEqual(["write 1.segment 4096+4096"]);
  // Three quarters full: the spare is made while the batch is under way.
  journal.append([entry(2, 3000)]);
  await drive(disk, journal.flush());
  await drive(disk, settle(30));
  expect(log.splice(0)).toEqual(["write 1.segment 8192+4096", ...preparation(2)]);
  journal.append([entry(3, 3000)]);
  await drive(disk, journal.flush());
  expect(log.splice(0)).toEqual([
    "write 1.segment 12288+4096",
    "open 2.segment commit",
    "write manifest.new 0+64",
    "sync manifest.new",
    "write 2.segment 4096+4096",
  ]);
});

it("J12 rotate without a spare: the segment is made inline, first of all", async () => {
  const disk = new MemoryDisk({ stepped: true });
  const { journal, advances } = await drive(disk, open(disk));
  const log = recorded(disk);
  journal.append([entry(1, 3000)]);
  journal.append([entry(2, 6000)]);
  await drive(disk, journal.flush());
  expect(log).toEqual([
    "write 1.segment 4096+4096",
    ...preparation(2),
    "write 1.segment 8192+4096",
    "open 2.segment commit",
    "write manifest.new 0+64",
    "sync manifest.new",
    "write 2.segment 4096+8192",
  ]);
  expect(advances).toEqual([1, 2]);
});

it("close: every batch, then one that attests them, then the lock", async () => {
  const disk = new MemoryDisk();
  const { journal } = await open(disk, { segmentBytes: 65536 });
  const log = recorded(disk);
  journal.append([entry(1)]);
  await journal.close();
  expect(log).toEqual(["write 1.segment 4096+4096", "write 1.segment 8192+4096"]);
  const again = await open(disk, { segmentBytes: 65536 });
  log.splice(0);
  const untouched = recorded(disk);
  await again.journal.close();
  expect(untouched).toEqual([]);
});

it("commit: at most four in flight, in one write each, acknowledged in order whatever order they end in", async () => {
  const disk = new MemoryDisk({ stepped: true });
  const opened = await drive(disk, open(disk, { segmentBytes: 1024 * 1024, budgetBytes: 4 << 20 }));
  const { journal, advances } = opened;
  for (let i = 1; i <= 6; i++) {
    journal.append([entry(i, 20_000)]);
    await settle();
  }
  // 5 blocks each; the fifth batch waits for a slot and takes in the sixth entry.
  expect(disk.waiting.map(({ call }) => call.position / 4096)).toEqual([1, 6, 11, 16]);
  disk.waiting[2]?.release();
  disk.waiting[1]?.release();
  await settle();
  expect(advances).toEqual([]);
  expect(disk.waiting).toHaveLength(2);
  disk.waiting[0]?.release();
  await settle();
  expect(advances).toEqual([3]);
  expect(disk.waiting.map(({ call }) => [call.position / 4096, call.bytes / 4096])).toEqual([
    [16, 5],
    [21, 10],
  ]);
  await drive(disk, journal.flush());
  expect(advances).toEqual([3, 4, 6]);
});

it("J2 while one batch is in flight a second starts only when enough waits", async () => {
  const disk = new MemoryDisk({ stepped: true });
  const opened = await drive(disk, open(disk, { segmentBytes: 1024 * 1024, budgetBytes: 4 << 20 }));
  const { journal, advances } = opened;
  for (let i = 1; i <= 50; i++) {
    journal.append([entry(i, 256)]);
    await settle(1);
  }
  expect(disk.waiting).toHaveLength(1);
  disk.waiting[0]?.release();
  await settle();
  expect(advances).toEqual([1]);
  expect(disk.waiting).toHaveLength(1);
  await drive(disk, journal.flush());
  expect(advances).toEqual([1, 50]);
});

it("J2 a full batch goes without waiting for the end of the turn, also into a slot that gets free", async () => {
  const disk = new MemoryDisk({ stepped: true });
  const opened = await drive(disk, open(disk, { segmentBytes: 4 << 20, budgetBytes: 16 << 20 }));
  const { journal, advances } = opened;
  const writes = (): number => disk.waiting.filter(({ call }) => call.name === "write").length;
  for (let i = 1; i <= 2; i++) {
    journal.append([entry(i, 200_000)]);
  }
  expect(writes()).toBe(1);
  for (let i = 3; i <= 7; i++) {
    journal.append([entry(i, 1_000_000 - i)]);
  }
  expect(writes()).toBe(4);
  disk.waiting[0]?.release();
  // Promises settle, the turn does not end.
  await new Promise<void>((resolve) => {
    process.nextTick(resolve);
  });
  expect(advances).toEqual([1]);
  expect(writes()).toBe(4);
  await drive(disk, journal.flush());
  expect(advances.at(-1)).toBe(7);
});
