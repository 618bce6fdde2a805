import { describe, expect, test } from "vitest";
import { streamId } from "../../../shared/ids/mod.ts";
import { MemoryDisk } from "../../../origin/storage/mod.ts";
import { Bench, KiB, payload, readAll, storeFiles, until, warm } from "./harness.ts";

const all = (to: number, maxBytes = 1 << 30): { from: number; to: number; maxBytes: number } => ({
  from: 0,
  to,
  maxBytes,
});

describe("runs", () => {
  test("hold records of many sizes, which are read back as they were, also after a restart", async () => {
    const disk = new MemoryDisk();
    const bench = await Bench.open(disk);
    const given = new Map<number, Uint8Array[]>();
    const sizes = [0, 1, 5, 100, 4096, 65_519, 65_520, 65_521, 70_000, 300_000];
    for (let n = 0; n < 200; n++) {
      const stream = 1 + ((n * 7) % 11);
      const record = payload(n, (sizes[n % sizes.length] ?? 0) + (n % 3));
      bench.append(stream, [record]);
      given.set(stream, [...(given.get(stream) ?? []), record]);
      if (n === 70 || n === 140) {
        await bench.checkpoint();
      }
    }
    await bench.checkpoint();
    await bench.store.close();

    const again = await Bench.open(disk, {}, bench.journal);
    expect(again.store.stats()).toMatchObject({ runs: 3, checkpointLsn: 200, arenaBytes: 0 });
    for (const [stream, records] of given) {
      const read = await readAll(again.records, stream, all(records.length, 200 * KiB));
      expect(read.length).toBe(records.length);
      expect(read.every((record, i) => Buffer.compare(record, records[i] ?? record) === 0)).toBe(
        true,
      );
      let byte = 0;
      for (let record = 0; record <= records.length; record++) {
        const { value } = await warm(() => again.records.position(streamId(stream), record));
        expect(value).toBe(byte);
        byte += records[record]?.length ?? 0;
      }
    }
    expect(again.store.stats()).toMatchObject({
      damagedRecords: 0,
      damagedTables: 0,
      repairedPages: 0,
    });
    await again.store.close();
  });

  test("are read in exactly the extents asked for, and what was read is neither read nor hashed again", async () => {
    const disk = new MemoryDisk();
    const bench = await Bench.open(disk);
    for (let n = 0; n < 100; n++) {
      bench.append(1, [payload(n, 300)]);
    }
    bench.append(2, [payload(7, 50)]);
    await bench.checkpoint();
    await bench.store.close();
    const { store, records } = await Bench.open(disk, {}, bench.journal);
    const opened = store.stats();
    // One chunk: read from record 10 as much as 1,000 bytes hold.
    const first = await warm(() =>
      records.read(streamId(1), { from: 10, to: 100, maxBytes: 1000 }),
    );
    expect(first.loads).toBe(1);
    expect(first.value.map(({ length }) => length)).toEqual([300, 300, 300]);
    const cold = store.stats();
    expect(cold.bytesRead - opened.bytesRead).toBe(100 * 16 + 900);
    expect(cold.bytesHashed - opened.bytesHashed).toBe(100 * 16 + 900);
    expect(cold.bytesReturned).toBe(900);
    // Again, and one record more.
    const warmed = await warm(() =>
      records.read(streamId(1), { from: 11, to: 100, maxBytes: 600 }),
    );
    expect(warmed.loads).toBe(0);
    expect(store.stats()).toMatchObject({
      bytesRead: cold.bytesRead,
      bytesHashed: cold.bytesHashed,
    });
    const more = await warm(() => records.read(streamId(1), { from: 13, to: 14, maxBytes: 600 }));
    expect(more.value.length).toBe(1);
    expect(store.stats().bytesRead - cold.bytesRead).toBe(300);
    expect(store.stats().bytesHashed - cold.bytesHashed).toBe(300);
    await store.close();
  });

  test("a whole chunk is one read of payload and table", async () => {
    const disk = new MemoryDisk();
    const bench = await Bench.open(disk);
    for (let n = 0; n < 10; n++) {
      bench.append(1, [payload(n, 300)]);
    }
    await bench.checkpoint();
    await bench.store.close();
    const { store, records } = await Bench.open(disk, {}, bench.journal);
    let reads = 0;
    disk.observer = ({ name }) => {
      reads += name === "read" ? 1 : 0;
      return undefined;
    };
    const before = store.stats().bytesRead;
    const { value } = await warm(() => records.read(streamId(1), all(10)));
    expect(value.length).toBe(10);
    expect(reads).toBe(1);
    expect(store.stats().bytesRead - before).toBe(3000 + 160);
    await store.close();
  });

  test("pack small streams: a hundred of them take no block each", async () => {
    const disk = new MemoryDisk();
    const bench = await Bench.open(disk);
    for (let n = 0; n < 1000; n++) {
      bench.append(1 + (n % 100), [payload(n, 256)]);
    }
    await bench.checkpoint();
    const [run] = [...storeFiles(disk)].filter(([name]) => name.endsWith(".run"));
    const payloadBytes = 256 * 1000;
    expect(run?.[1].length).toBeLessThan(payloadBytes * 1.25);
    expect(bench.store.stats().runBytes).toBe(run?.[1].length);
    await bench.store.close();
  });

  test("are merged by tiers, what deleted streams held is left out, and readers notice nothing", async () => {
    const disk = new MemoryDisk();
    const bench = await Bench.open(disk);
    const given: Uint8Array[] = [];
    const big = payload(5, 5 * KiB);
    for (let round = 0; round < 40; round++) {
      for (let n = 0; n < 5; n++) {
        const record = payload(round * 5 + n, 20 + n);
        bench.append(1, [record]);
        given.push(record);
      }
      if (round < 30) {
        bench.append(2, [payload(round, 500)]);
      }
      bench.append(100 + round, [big]);
      if (round === 30) {
        bench.drop(2);
        for (let dead = 100; dead < 130; dead++) {
          bench.drop(dead);
        }
      }
      await bench.checkpoint();
    }
    const idle = (): boolean => {
      const { runs, merges } = bench.store.stats();
      return runs <= 8 && merges >= 10;
    };
    await until(idle);
    expect(bench.store.stats()).toMatchObject({ mergeFailures: 0, checkpoints: 40 });
    expect(await readAll(bench.records, 1, all(given.length, 1000))).toEqual(given);
    const files = [...storeFiles(disk)];
    await until(() => storeFiles(disk).size === bench.store.stats().runs + 1);
    expect(files.length).toBeGreaterThan(1);
    await bench.store.close();
    const again = await Bench.open(disk, {}, bench.journal);
    expect(await readAll(again.records, 1, all(given.length, 1000))).toEqual(given);
    expect(await readAll(again.records, 139, all(1))).toEqual([big]);
    expect(again.state.get(1)).toBe("200");
    expect(again.state.has(2)).toBe(false);
    // Ten streams of 5 KiB live, thirty are dead; a run has 28 KiB beside its records.
    expect(again.store.stats().runBytes).toBeLessThan(160 * KiB);
    await again.store.close();
  });

  test("the cache gives up what was used least recently", async () => {
    const disk = new MemoryDisk();
    const bench = await Bench.open(disk);
    for (let stream = 1; stream <= 20; stream++) {
      bench.append(stream, [payload(stream, 40 * KiB)]);
    }
    await bench.checkpoint();
    await bench.store.close();
    const { store, records } = await Bench.open(disk, { cacheBytesMax: 100 * KiB }, bench.journal);
    for (let stream = 1; stream <= 20; stream++) {
      await warm(() => records.read(streamId(stream), all(1)));
    }
    expect(store.stats().cachedBytes).toBeLessThan(142 * KiB);
    const { loads } = await warm(() => records.read(streamId(20), all(1)));
    expect(loads).toBe(0);
    const old = await warm(() => records.read(streamId(1), all(1)));
    expect(old.loads).toBe(1);
    await store.close();
  });
});
