import { type Lsn, lsn, type StreamId, streamId } from "../../../shared/ids/mod.ts";
import { Arenas } from "../../../origin/store/arenas.ts";
import { newCounters } from "../../../origin/store/counters.ts";
import { Records } from "../../../origin/store/records.ts";
import { RunSet } from "../../../origin/store/runSet.ts";
import {
  type CheckpointJournal,
  Cold,
  openStore,
  type RecordRange,
  type RecordStore,
  type StateEntry,
  type Store,
  type StoreOptions,
  type StoreStats,
  streamStateKind,
} from "../../../origin/store/mod.ts";
import type { Disk, MemoryDisk } from "../../../origin/storage/mod.ts";
import { ManualClock } from "../manualClock.ts";
import { seededRandom } from "../seededRandom.ts";

export const KiB = 1024;

/** Records without a disk: only the active arena, which takes as much as `bytesMax`. */
export class ResidentRecords extends Records {
  readonly #arenas: Arenas;

  constructor(bytesMax: number) {
    const arenas = new Arenas();
    super(arenas, new RunSet(newCounters(), 0), { arenaBytesMax: bytesMax, bytesMax });
    this.#arenas = arenas;
  }

  /** Records the stream holds. */
  count(stream: StreamId): number {
    return this.#arenas.active.get(stream)?.next ?? 0;
  }
}

/** The numbers of a store that has done nothing. */
export const idleStats: StoreStats = {
  ...newCounters(),
  ...{ checkpointLsn: 0, runs: 0, runBytes: 0, arenaBytes: 0, cachedBytes: 0, failed: null },
};

/** A journal that only counts; what is reserved becomes durable when the test says so. */
export class CountingJournal implements CheckpointJournal {
  readonly id = "j-test";
  reserved: Lsn = lsn(0);
  durable: Lsn = lsn(0);
  trimmed: Lsn = lsn(0);
  bytesWritten = 0;

  trim(upTo: Lsn): void {
    if (upTo > this.durable) {
      throw new Error(`trimmed to ${upTo}, durable is ${this.durable}`);
    }
    this.trimmed = upTo;
  }

  stats(): { bytesWritten: number } {
    return { bytesWritten: this.bytesWritten };
  }
}

/** A store in `/data` with a counting journal, and an owner whose state is a map. */
export class Bench {
  readonly store: Store;
  readonly journal: CountingJournal;
  readonly clock: ManualClock;
  /** The owner's state: kind 1 by key. */
  readonly state: Map<number, string>;
  readonly failures: unknown[];
  #changed = new Set<number>();
  #dropped: number[] = [];
  readonly #ends = new Map<number, { record: number; byte: number }>();

  private constructor(
    store: Store,
    journal: CountingJournal,
    clock: ManualClock,
    failures: unknown[],
  ) {
    this.store = store;
    this.journal = journal;
    this.clock = clock;
    this.failures = failures;
    this.state = new Map([...store.state()].map((entry) => [entry.key, textOf(entry)]));
  }

  static async open(
    disk: Disk,
    options: Partial<StoreOptions> = {},
    journal: CountingJournal = new CountingJournal(),
  ): Promise<Bench> {
    const clock = new ManualClock();
    const failures: unknown[] = [];
    const store = await openStore({
      ...{ dir: "/data", disk, clock, random: seededRandom(7) },
      onFailed: (error) => failures.push(error),
      ...options,
    });
    const bench = new Bench(store, journal, clock, failures);
    try {
      await store.start({ journal, freeze: () => bench.#freeze() }, false);
    } catch (error) {
      await store.close();
      throw error;
    }
    return bench;
  }

  get records(): RecordStore {
    return this.store.records;
  }

  /** One entry: `records` to `stream`, and the state key of its number set to their text. */
  append(stream: number, records: readonly Uint8Array[], time = 1000): void {
    this.records.admit(records.reduce((sum, { length }) => sum + length, 0));
    const at = this.#ends.get(stream) ?? { record: 0, byte: 0 };
    this.reserve(1);
    this.records.append(streamId(stream), at, records, time);
    const byte = at.byte + records.reduce((sum, { length }) => sum + length, 0);
    this.#ends.set(stream, { record: at.record + records.length, byte });
    this.put(stream, `${at.record + records.length}`);
  }

  put(key: number, value: string | null): void {
    this.#changed.add(key);
    if (value === null) {
      this.state.delete(key);
    } else {
      this.state.set(key, value);
    }
  }

  /** Nobody reads the stream any more. */
  drop(stream: number): void {
    this.reserve(1);
    this.records.drop(streamId(stream));
    this.#dropped.push(stream);
    this.put(stream, null);
  }

  reserve(entries: number): void {
    this.journal.reserved = lsn(this.journal.reserved + entries);
    this.journal.bytesWritten += entries;
  }

  commit(): void {
    this.journal.durable = this.journal.reserved;
    this.store.onDurable();
  }

  /** Everything so far is in a run. */
  async checkpoint(): Promise<void> {
    const to = this.journal.reserved;
    this.commit();
    this.clock.advance(10_000);
    await until(() => this.store.stats().checkpointLsn === to);
  }

  #freeze(): { next(): StateEntry[] | null } {
    const changed = [...this.#changed].sort((a, b) => a - b);
    this.#changed = new Set();
    const entries: StateEntry[] = changed.map((key) => {
      const value = this.state.get(key);
      return { kind: 1, key, value: value === undefined ? null : new TextEncoder().encode(value) };
    });
    const dropped = this.#dropped.sort((a, b) => a - b);
    this.#dropped = [];
    entries.push(...dropped.map((key) => ({ kind: streamStateKind, key, value: null })));
    const pieces = [entries];
    return { next: () => pieces.pop() ?? null };
  }
}

const textOf = ({ value }: StateEntry): string => new TextDecoder().decode(value ?? undefined);

/** Waits, without a clock, until it holds. */
export async function until(holds: () => boolean): Promise<void> {
  for (let turn = 0; !holds(); turn++) {
    if (turn > 20_000) {
      throw new Error("it never came to hold");
    }
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

/** A call that may have to load first; with the number of loads it took. */
export async function warm<T>(call: () => T): Promise<{ value: T; loads: number }> {
  for (let loads = 0; loads < 100; loads++) {
    try {
      return { value: call(), loads };
    } catch (error) {
      if (!(error instanceof Cold)) {
        throw error;
      }
      await error.load();
    }
  }
  throw new Error("it stays cold");
}

/** All records of the range, over as many reads as it takes. */
export async function readAll(
  records: RecordStore,
  stream: number,
  { from, to, maxBytes }: RecordRange,
): Promise<Uint8Array[]> {
  const all: Uint8Array[] = [];
  while (from + all.length < to) {
    const range = { from: from + all.length, to, maxBytes };
    const { value } = await warm(() => records.read(streamId(stream), range));
    all.push(...value.map((record) => record.slice()));
  }
  return all;
}

/** `length` bytes that tell which they are. */
export function payload(n: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) {
    bytes[i] = n * 131 + i * 7 + (i >> 8);
  }
  return bytes;
}

/** The files of a memory disk's store, by name. */
export function storeFiles(disk: MemoryDisk): Map<string, Uint8Array> {
  const files = new Map<string, Uint8Array>();
  for (const [path, bytes] of disk.files()) {
    if (path.startsWith("/data/store/")) {
      files.set(path.slice("/data/store/".length), bytes);
    }
  }
  return files;
}
