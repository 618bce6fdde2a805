import { describe, expect, test } from "vitest";
import { ForebayError } from "../../../shared/errors/mod.ts";
import { lsn, streamId } from "../../../shared/ids/mod.ts";
import { MemoryDisk } from "../../../origin/storage/mod.ts";
import type { Store } from "../../../origin/store/mod.ts";
import { Bench, CountingJournal, payload, storeFiles, until, warm } from "./harness.ts";

/** A disk with one run: stream 1 has 100 records of 300 bytes, stream 2 has 10 of 50; and its journal. */
async function diskWithRun(): Promise<{ disk: MemoryDisk; journal: CountingJournal }> {
  const disk = new MemoryDisk();
  const bench = await Bench.open(disk);
  for (let n = 0; n < 100; n++) {
    bench.append(1, [payload(n, 300)]);
  }
  for (let n = 0; n < 10; n++) {
    bench.append(2, [payload(n, 50)]);
  }
  await bench.checkpoint();
  await bench.store.close();
  return { disk, journal: bench.journal };
}

const runName = "0000000000000001.run";

/** Changes bytes of a file as they lie on the disk. */
async function damage(disk: MemoryDisk, name: string, places: readonly number[]): Promise<void> {
  const file = await disk.open(`/data/store/${name}`, "update");
  for (const place of places) {
    const byte = new Uint8Array(1);
    await file.read(byte, place);
    await file.write(Uint8Array.of((byte[0] ?? 0) ^ 0x10), place);
  }
  await file.sync();
  await file.close();
}

/** Where the sections of the run lie, out of its header: FORMAT.md. */
function sections(disk: MemoryDisk): { index: number; state: number; bytes: number } {
  const run = storeFiles(disk).get(runName) ?? new Uint8Array(0);
  const view = new DataView(run.buffer, run.byteOffset);
  return {
    index: view.getFloat64(56, true),
    state: view.getFloat64(72, true),
    bytes: run.length,
  };
}

/** What a read of one record gives: its length, or the code it fails with. */
async function outcome(store: Store, stream: number, record: number): Promise<string> {
  try {
    const range = { from: record, to: record + 1, maxBytes: 1000 };
    const { value } = await warm(() => store.records.read(streamId(stream), range));
    return String(value[0]?.length);
  } catch (error) {
    return error instanceof ForebayError ? error.code : String(error);
  }
}

async function outcomes(store: Store, stream: number, records: number): Promise<string[]> {
  const all: string[] = [];
  for (let record = 0; record < records; record++) {
    all.push(await outcome(store, stream, record));
  }
  return all;
}

async function refusal(disk: MemoryDisk, journal?: CountingJournal): Promise<ForebayError> {
  try {
    const { store } = await Bench.open(disk, {}, journal);
    await store.close();
  } catch (error) {
    if (error instanceof ForebayError) {
      return error;
    }
    throw error;
  }
  throw new Error("the store opened");
}

describe("damage is contained and named", () => {
  test("a flipped bit in a payload fails that record, and no other", async () => {
    const { disk, journal } = await diskWithRun();
    await damage(disk, runName, [4096 + 300 * 7 + 5]);
    const { store } = await Bench.open(disk, {}, journal);
    const expected = Array.from({ length: 100 }, (_, n) => (n === 7 ? "record_damaged" : "300"));
    expect(await outcomes(store, 1, 100)).toEqual(expected);
    expect(await outcomes(store, 2, 10)).toEqual(Array.from({ length: 10 }, () => "50"));
    expect(store.stats()).toMatchObject({ damagedRecords: 1, damagedTables: 0 });
    // A read over it ends before it, and says so where it begins.
    const upTo = await warm(() =>
      store.records.read(streamId(1), { from: 5, to: 100, maxBytes: 9999 }),
    );
    expect(upTo.value.length).toBe(2);
    const text = await outcomeMessage(store, 1, 7);
    expect(text).toMatch(/record 7 is lost: its payload in .*0001\.run, chunk 0.*record 8 follows/);
    await store.close();
  });

  test("a flipped bit in a table fails its chunk's records, and no other stream's", async () => {
    const { disk, journal } = await diskWithRun();
    await damage(disk, runName, [4096 + 300 * 100 + 16 * 50]);
    const { store } = await Bench.open(disk, {}, journal);
    expect(new Set(await outcomes(store, 1, 100))).toEqual(new Set(["record_damaged"]));
    expect(new Set(await outcomes(store, 2, 10))).toEqual(new Set(["50"]));
    expect(store.stats()).toMatchObject({ damagedRecords: 100, damagedTables: 1 });
    await store.close();
  });

  test("one copy of a page of index, state, header or catalog is made good by the other", async () => {
    const { disk, journal } = await diskWithRun();
    const { index, state } = sections(disk);
    await damage(disk, runName, [0, index + 100, state + 4096 + 100]);
    await damage(disk, "catalog", [4096 + 30]);
    const bench = await Bench.open(disk, {}, journal);
    expect(bench.store.stats()).toMatchObject({ repairedPages: 4, damagedIndexes: 0 });
    expect(new Set(await outcomes(bench.store, 1, 100))).toEqual(new Set(["300"]));
    expect(bench.state).toEqual(
      new Map([
        [1, "100"],
        [2, "10"],
      ]),
    );
    await bench.store.close();
  });

  test("an index lost in both copies fails the run's records, never reads as empty, and its state is used", async () => {
    const { disk, journal } = await diskWithRun();
    const { index } = sections(disk);
    await damage(disk, runName, [index + 100, index + 4096 + 100]);
    const bench = await Bench.open(disk, {}, journal);
    expect(bench.store.stats()).toMatchObject({ damagedIndexes: 1 });
    expect(new Set(await outcomes(bench.store, 1, 100))).toEqual(new Set(["record_damaged"]));
    expect(bench.state.get(2)).toBe("10");
    await bench.store.close();
  });

  test("state or catalog lost in both copies, a missing run and a foreign one refuse the start", async () => {
    const both = await diskWithRun();
    const { state } = sections(both.disk);
    await damage(both.disk, runName, [state + 100, state + 4096 + 100]);
    expect(await refusal(both.disk, both.journal)).toMatchObject({ code: "store_corrupt" });

    const catalog = await diskWithRun();
    await damage(catalog.disk, "catalog", [30, 4096 + 30]);
    expect(await refusal(catalog.disk, catalog.journal)).toMatchObject({ code: "store_corrupt" });

    const missing = await diskWithRun();
    await missing.disk.unlink(`/data/store/${runName}`);
    expect((await refusal(missing.disk, missing.journal)).message).toMatch(/is not there, though/);
  });

  test("a run that was cut short fails what is missing", async () => {
    const { disk, journal } = await diskWithRun();
    const whole = storeFiles(disk).get(runName)?.slice() ?? new Uint8Array(0);
    await disk.unlink(`/data/store/${runName}`);
    const file = await disk.open(`/data/store/${runName}`, "create");
    await file.write(whole.subarray(0, 20_000), 0);
    await file.close();
    // Its state is gone with it.
    expect(await refusal(disk, journal)).toMatchObject({ code: "store_corrupt" });
  });

  test("a catalog and a journal that do not belong together refuse the start, and nothing is changed", async () => {
    const { disk, journal } = await diskWithRun();
    const files = [...storeFiles(disk).keys()];
    const shorter = new CountingJournal();
    shorter.reserved = lsn(50);
    expect((await refusal(disk, shorter)).message).toMatch(/end at LSN 110, the journal at 50/);
    journal.trimmed = lsn(120);
    journal.reserved = lsn(130);
    expect((await refusal(disk, journal)).message).toMatch(/trimmed to LSN 120, .* ends at 110/);
    const empty = new MemoryDisk();
    expect(await refusal(empty, journal)).toMatchObject({ code: "store_corrupt" });
    expect([...storeFiles(disk).keys()]).toEqual(files);
  });

  test("a disk that gives errors answers store_failed, and the record again when it is well", async () => {
    const { disk, journal } = await diskWithRun();
    const { store } = await Bench.open(disk, {}, journal);
    disk.observer = ({ name }) => (name === "read" ? "EIO" : undefined);
    expect(await outcome(store, 1, 3)).toBe("store_failed");
    disk.observer = undefined;
    expect(await outcome(store, 1, 3)).toBe("300");
    await store.close();
  });
});

async function outcomeMessage(store: Store, stream: number, record: number): Promise<string> {
  try {
    const range = { from: record, to: record + 1, maxBytes: 1000 };
    await warm(() => store.records.read(streamId(stream), range));
    return "read";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

describe("a checkpoint that fails", () => {
  test("leaves no run behind, is tried again, and costs nothing but time", async () => {
    const disk = new MemoryDisk();
    const bench = await Bench.open(disk);
    bench.append(1, [payload(1, 300)]);
    bench.commit();
    disk.observer = ({ name, path }) =>
      name === "sync" && path.endsWith(".run") ? "EIO" : undefined;
    bench.clock.advance(10_000);
    await until(() => bench.failures.length === 1);
    expect(bench.store.stats()).toMatchObject({ checkpointFailures: 1, checkpointLsn: 0 });
    expect(bench.store.stats().failed).toMatch(/EIO/);
    expect([...storeFiles(disk).keys()]).toEqual([]);
    bench.append(1, [payload(2, 300)]);
    bench.commit();
    bench.clock.advance(999);
    await until(() => true);
    expect(bench.failures.length).toBe(1);
    bench.clock.advance(1);
    await until(() => bench.failures.length === 2);
    disk.observer = undefined;
    bench.clock.advance(2000);
    await until(() => bench.store.stats().checkpointLsn === 1);
    expect(bench.store.stats()).toMatchObject({ failed: null, checkpoints: 1, runs: 1 });
    expect(bench.failures.at(-1)).toBe(null);
    await bench.checkpoint();
    expect(bench.journal.trimmed).toBe(2);
    await bench.store.close();
  });

  test("a catalog whose rename was not made durable is published again, with the same run", async () => {
    const disk = new MemoryDisk();
    const bench = await Bench.open(disk);
    bench.append(1, [payload(1, 300)]);
    bench.commit();
    let renamed = false;
    disk.observer = ({ name }) => {
      renamed ||= name === "rename";
      return renamed && name === "syncDirectory" ? "EIO" : undefined;
    };
    bench.clock.advance(10_000);
    await until(() => bench.failures.length === 1);
    expect(bench.journal.trimmed).toBe(0);
    expect([...storeFiles(disk).keys()].sort()).toEqual([runName, "catalog"]);
    disk.observer = undefined;
    bench.clock.advance(1000);
    await until(() => bench.store.stats().checkpointLsn === 1);
    expect([...storeFiles(disk).keys()].sort()).toEqual([runName, "catalog"]);
    await bench.store.close();
  });

  test("with both arenas full appends get arenas_full with Retry-After, until the run is written", async () => {
    const disk = new MemoryDisk();
    const bench = await Bench.open(disk, { arenaBytesMax: 10_000 });
    disk.observer = ({ name, path }) =>
      name === "write" && path.endsWith(".run") ? "ENOSPC" : undefined;
    let code = "";
    for (let n = 0; n < 100 && code === ""; n++) {
      try {
        bench.append(1, [payload(n, 400)]);
      } catch (error) {
        code = error instanceof ForebayError ? `${error.status} ${error.code}` : String(error);
        expect((error as ForebayError).retryAfterSeconds).toBe(1);
      }
      bench.commit();
    }
    expect(code).toBe("503 arenas_full");
    await until(() => bench.failures.length > 0);
    disk.observer = undefined;
    bench.clock.advance(1000);
    await until(() => bench.store.stats().checkpoints === 1);
    // The full arena is closed by the append that has no room in it.
    bench.append(1, [payload(1, 400)]);
    await until(() => bench.store.stats().checkpoints === 2);
    await bench.checkpoint();
    expect(bench.store.stats()).toMatchObject({ failed: null, checkpoints: 3, runs: 3 });
    await bench.store.close();
  });

  test("is not published before the journal is durable up to it", async () => {
    const disk = new MemoryDisk();
    const bench = await Bench.open(disk, { arenaBytesMax: 1000 });
    bench.append(1, [payload(1, 900)]);
    bench.append(1, [payload(2, 900)]);
    await until(() => [...storeFiles(disk).keys()].includes(runName));
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect([...storeFiles(disk).keys()]).toEqual([runName]);
    expect(bench.store.stats()).toMatchObject({ checkpoints: 0, checkpointLsn: 0 });
    bench.journal.durable = lsn(1);
    bench.store.onDurable();
    await until(() => bench.store.stats().checkpointLsn === 1);
    expect(bench.journal.trimmed).toBe(1);
    await bench.store.close();
  });
});
