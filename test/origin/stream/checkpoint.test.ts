import fc from "fast-check";
import { expect, test } from "vitest";
import { type Journal, openJournal } from "../../../origin/journal/mod.ts";
import { MemoryDisk } from "../../../origin/storage/mod.ts";
import { Cold, openStore, type Store } from "../../../origin/store/mod.ts";
import { apply } from "../../../origin/stream/apply.ts";
import { decodeEntry } from "../../../origin/stream/entry.ts";
import { readRecords } from "../../../origin/stream/lineage.ts";
import { hello } from "../../../origin/stream/outbox.ts";
import { restore } from "../../../origin/stream/restore.ts";
import { Shard } from "../../../origin/stream/shard.ts";
import type { StreamState } from "../../../origin/stream/state.ts";
import { lsn } from "../../../shared/ids/mod.ts";
import { seededRandom } from "../seededRandom.ts";
import { ResidentRecords, warm } from "../store/harness.ts";
import { TestClock, text } from "./harness.ts";
import { image, imageOf } from "./image.ts";
import { perform, type Step, step } from "./steps.ts";

/*
 * The streams over the real journal and the real store, on a disk that loses what was not synced. The model is the
 * plainest there is: all entries ever written, replayed from the first one into memory.
 */

const KiB = 1024;

class Life {
  readonly disk: MemoryDisk;
  readonly clock: TestClock;
  readonly shard: Shard;
  readonly store: Store;
  readonly journal: Journal;
  /** Every entry of the journal, those of earlier lives too. */
  readonly entries: Uint8Array[];
  readonly replayed: number;

  private constructor(given: Omit<Life, "perform" | "images" | "settle" | "close">) {
    this.disk = given.disk;
    this.clock = given.clock;
    this.shard = given.shard;
    this.store = given.store;
    this.journal = given.journal;
    this.entries = given.entries;
    this.replayed = given.replayed;
  }

  /** @param earlier what an earlier life wrote; more than what survived */
  static async open(disk: MemoryDisk, clock: TestClock, earlier: Uint8Array[]): Promise<Life> {
    const random = seededRandom(clock.now() & 0xffff);
    const store = await openStore({
      ...{ dir: "/data", disk, clock, random },
      arenaBytesMax: 4 * KiB,
      cacheBytesMax: 2 * KiB,
      checkpointAgeMs: 1000,
    });
    const shard = new Shard(clock, store.records);
    restore(shard.state, store.state(), null, store.checkpointLsn);
    let replayed = 0;
    const advance = (durable: number): void => {
      shard.touched.advance(lsn(durable), (stream) => store.records.drop(stream.id));
      store.onDurable();
    };
    const journal = await openJournal(
      {
        ...{ dir: "/data", disk, clock, random },
        segmentBytes: 16 * KiB,
        budgetBytes: 128 * KiB,
        events: {
          onDurable: advance,
          onFailed: (error) => {
            throw error;
          },
        },
      },
      (at, bytes) => {
        if (store.replays(at)) {
          replayed += 1;
          if (Buffer.compare(bytes, earlier[at - 1] ?? new Uint8Array(0)) !== 0) {
            throw new Error(`entry ${at} came back as another`);
          }
          for (const op of decodeEntry(bytes)) {
            apply(shard, op, at);
          }
        }
      },
    );
    const entries = earlier.slice(0, journal.reserved);
    const append = journal.append.bind(journal);
    journal.append = (parts) => {
      const bytes = Buffer.concat(parts);
      const at = append(parts);
      entries.push(bytes);
      return at;
    };
    shard.attach(journal);
    await store.start({ journal, freeze: () => shard.changes.freeze(shard.state, null) }, false);
    advance(journal.durable);
    return new Life({ disk, clock, shard, store, journal, entries, replayed });
  }

  async perform(each: Step): Promise<void> {
    for (;;) {
      try {
        perform(this.shard, this.clock, each);
        return;
      } catch (error) {
        if (!(error instanceof Cold)) {
          throw error;
        }
        await error.load();
      }
    }
  }

  /** The state and every record of every stream, here and in the model. */
  async images(): Promise<{ live: unknown; model: unknown }> {
    const model = new Shard(this.clock, new ResidentRecords(1 << 26));
    this.entries.forEach((entry, i) => {
      for (const op of decodeEntry(entry)) {
        apply(model, op, lsn(i + 1));
      }
    });
    const read = new Map<StreamState, string[]>();
    const { state } = this.shard;
    for (const stream of [...state.byId.values(), ...state.softDeleted.values()]) {
      const records: string[] = [];
      while (records.length < stream.record) {
        const range = { from: records.length, to: stream.record, maxBytes: 3 };
        const { value } = await warm(() => readRecords(this.store.records, stream, range));
        if (value.length === 0) {
          throw new Error(`record ${records.length} of stream ${stream.id} is not there`);
        }
        records.push(...value.map(text));
      }
      read.set(stream, records);
    }
    return { live: imageOf(state, (stream) => read.get(stream)), model: image(model) };
  }

  async settle(): Promise<void> {
    await this.journal.flush();
    for (let turn = 0; turn < 2000; turn++) {
      if (this.store.checkpointLsn === this.journal.reserved) {
        return;
      }
      this.clock.advance(1000);
      await turns(1);
    }
    throw new Error(`no checkpoint comes to be: ${this.store.stats().failed}`);
  }

  async close(): Promise<void> {
    await this.store.close();
    await this.journal.close();
  }
}

async function turns(n: number): Promise<void> {
  for (let i = 0; i < n; i++) {
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

/** What happens between two steps: nothing, some turns, a checkpoint, a restart, a power cut. */
const between = fc.oneof(
  { arbitrary: fc.constant("nothing" as const), weight: 12 },
  { arbitrary: fc.constant("turns" as const), weight: 6 },
  { arbitrary: fc.constant("checkpoint" as const), weight: 2 },
  { arbitrary: fc.constant("restart" as const), weight: 1 },
  { arbitrary: fc.constant("crash" as const), weight: 2 },
);
const soaking = process.env["FOREBAY_SOAK"] === "1";
const history = fc.array(fc.tuple(step, between, fc.nat(30)), { maxLength: 60, size: "max" });

test(
  "newest run state and replay equal the live state, whatever happened and wherever power was lost",
  async () => {
    const seen = {
      checkpoints: 0,
      merges: 0,
      crashes: 0,
      lost: 0,
      replayed: 0,
      cold: 0,
      trimmed: 0,
    };
    let seed = 1;
    await fc.assert(
      fc.asyncProperty(history, async (steps) => {
        const random = seededRandom(seed++);
        let life = await Life.open(new MemoryDisk(), new TestClock(), []);
        hello(life.shard, { buffer: "eu:0", epoch: "e1", boot: 2, highestFsn: 0 });
        const check = async (): Promise<void> => {
          const { live, model } = await life.images();
          expect(live).toEqual(model);
        };
        const end = (): void => {
          const stats = life.store.stats();
          seen.checkpoints += stats.checkpoints;
          seen.merges += stats.merges;
          seen.cold += stats.bytesRead > 0 ? 1 : 0;
          seen.trimmed += life.journal.trimmed > 0 ? 1 : 0;
          seen.replayed += life.replayed;
        };
        for (const [each, then, n] of steps) {
          await life.perform(each);
          switch (then) {
            case "turns":
              life.clock.advance(n * 100);
              await turns(n);
              break;
            case "checkpoint":
              await life.settle();
              break;
            case "restart":
              await life.journal.flush();
              end();
              await life.close();
              life = await Life.open(life.disk, life.clock, life.entries);
              await check();
              break;
            case "crash": {
              life.clock.advance(n * 100);
              await turns(n % 3 === 0 ? 0 : n);
              const durable = life.journal.durable;
              end();
              const disk = life.disk.crash(random, random.next());
              const before = life.entries;
              await life.close();
              life = await Life.open(disk, life.clock, before);
              expect(life.journal.reserved).toBeGreaterThanOrEqual(durable);
              seen.crashes += 1;
              seen.lost += before.length - life.entries.length;
              await check();
              break;
            }
            case "nothing":
              break;
          }
        }
        await check();
        await life.settle();
        await check();
        end();
        await life.close();
      }),
      { numRuns: soaking ? 10_000 : 100 },
    );
    expect(seen.checkpoints).toBeGreaterThan(200);
    expect(seen.merges).toBeGreaterThan(20);
    expect(seen.crashes).toBeGreaterThan(100);
    expect(seen.lost).toBeGreaterThan(10);
    expect(seen.replayed).toBeGreaterThan(200);
    expect(seen.cold).toBeGreaterThan(50);
    expect(seen.trimmed).toBeGreaterThan(50);
  },
  soaking ? 3_600_000 : 60_000,
);
