import { describe, expect, it } from "vitest";
import {
  lockData,
  MemoryJournal,
  openJournal,
  SegmentBudget,
  TrimMarks,
  type EntryReader,
  type Journal,
} from "../../../origin/journal/mod.ts";
import { MemoryDisk } from "../../../origin/storage/mod.ts";
import type { ForebayError } from "../../../shared/errors/mod.ts";
import { lsn } from "../../../shared/ids/mod.ts";
import { ManualClock } from "../manualClock.ts";
import { seededRandom } from "../seededRandom.ts";
import {
  diskOf,
  drive,
  entry,
  failing,
  KiB,
  marks,
  open,
  refusal,
  settle,
  snapshot,
} from "./harness.ts";

/** Everything a reader gives now, as LSN and mark. */
async function rest(reader: EntryReader): Promise<string[]> {
  const found: string[] = [];
  for (let entries = await reader.next(); entries !== undefined; entries = await reader.next()) {
    for (const { lsn: at, bytes } of entries) {
      found.push(`${at} ${marks([bytes])[0]}`);
    }
  }
  return found;
}

const lengths = [3000, 20, 3000, 0, 5000, 100, 7000, 3000, 3000, 40];
const lengthOf = (n: number): number => lengths[n % lengths.length] ?? 0;
const numbered = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i).map(
    (n) => `${n} ${marks([entry(n, lengthOf(n))])[0]}`,
  );

async function fill(journal: Journal, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const n = journal.reserved + 1;
    journal.append([entry(n, lengthOf(n))]);
    if (n % 3 === 0) {
      await journal.flush();
    }
  }
  await journal.flush();
  await settle();
}

const kinds: readonly (readonly [string, () => Promise<Journal>])[] = [
  ["disk", async () => (await open(new MemoryDisk())).journal],
  ["buffered disk", async () => (await open(new MemoryDisk({ direct: false }))).journal],
  [
    "memory",
    () =>
      Promise.resolve(
        new MemoryJournal({
          ...{ random: seededRandom(1), segmentBytes: 16 * KiB, budgetBytes: 1024 * KiB },
          events: { onDurable: () => undefined, onFailed: () => undefined },
        }),
      ),
  ],
];

describe.each(kinds)("a reader of a journal (%s)", (_kind, make) => {
  it("gives each durable entry once, in order, from any LSN on, over segments and while they grow", async () => {
    const journal = await make();
    await fill(journal, 40);
    const readers = [1, 2, 17, 40, 41].map((from) => [from, journal.read(lsn(from))] as const);
    for (const [from, reader] of readers) {
      expect(await rest(reader)).toEqual(numbered(from, 40));
      expect(await reader.next()).toBeUndefined();
    }
    await fill(journal, 25);
    for (const [from, reader] of readers) {
      expect(await rest(reader)).toEqual(numbered(Math.max(from, 41), 65));
      await reader.close();
      expect(await reader.next().catch(() => undefined)).toBeUndefined();
    }
    expect(await rest(journal.read(lsn(66)))).toEqual([]);
    await journal.close();
  });

  it("J17 the segment it stands in is not recycled until it moves on or is closed", async () => {
    const journal = await make();
    await fill(journal, 20);
    const reader = journal.read(lsn(1));
    const first = await reader.next();
    expect(first?.[0]?.lsn).toBe(1);
    const held = journal.stats().segments;
    journal.trim(lsn(20));
    await settle(30);
    expect(journal.stats().segments).toBe(held);
    const bytes = first?.[0]?.bytes.slice() ?? new Uint8Array(0);
    await fill(journal, 10);
    expect(marks([bytes])).toEqual(marks([entry(1, lengthOf(1))]));
    expect(await rest(reader)).toEqual(numbered((first?.at(-1)?.lsn ?? 0) + 1, 30));
    await settle(30);
    const { segments, spares } = journal.stats();
    expect(segments - spares).toBeLessThan(held);
    journal.trim(lsn(30));
    await settle(30);
    await reader.close();
    await settle(30);
    const rested = journal.stats();
    expect(rested.segments - rested.spares).toBeLessThanOrEqual(2);
    await journal.close();
  });

  it("an entry that is trimmed is gone: said, not skipped", async () => {
    const journal = await make();
    await fill(journal, 20);
    journal.trim(lsn(12));
    await settle(30);
    const { trimmed } = journal;
    expect(trimmed).toBe(12);
    expect(refusal(() => journal.read(lsn(12)))).toMatchObject({ code: "offset_gone" });
    expect(await rest(journal.read(lsn(13)))).toEqual(numbered(13, 20));
    await journal.close();
  });
});

describe("a reader of files", () => {
  it("sees nothing that is not durable yet", async () => {
    const disk = new MemoryDisk({ stepped: true });
    const { journal } = await drive(disk, open(disk));
    journal.append([entry(1, 20)]);
    await drive(disk, journal.flush());
    journal.append([entry(2, 20)]);
    await settle();
    const reader = journal.read(lsn(1));
    const reading = reader.next();
    for (let i = 0; i < 20; i++) {
      disk.waiting.find(({ call }) => call.name !== "write")?.release();
      await settle(1);
    }
    const entries = await reading;
    expect(entries?.map(({ lsn: at }) => at)).toEqual([1]);
    const waiting = disk.waiting.length;
    expect(await reader.next()).toBeUndefined();
    // Nothing new: no call either.
    expect(disk.waiting.length).toBe(waiting);
    await drive(disk, journal.flush());
    expect((await drive(disk, reader.next()))?.map(({ lsn: at }) => at)).toEqual([2]);
  });

  it("says so, too, when only the missing entries tell that they were trimmed", async () => {
    const disk = new MemoryDisk();
    const { journal } = await open(disk);
    await fill(journal, 20);
    journal.trim(lsn(12));
    await settle(30);
    const files = snapshot(disk);
    files.delete("/data/journal/0/watermark");
    const again = await open(await diskOf(files));
    expect([again.journal.trimmed, again.firstLsn > 1]).toEqual([0, true]);
    const gone = await again.journal
      .read(lsn(1))
      .next()
      .catch((error: unknown) => error);
    expect(gone).toMatchObject({ code: "offset_gone" });
  });

  it("J29 lets go after close, and nothing touches the files any more", async () => {
    const disk = new MemoryDisk();
    const { journal } = await open(disk);
    await fill(journal, 20);
    const reader = journal.read(lsn(1));
    await reader.next();
    journal.trim(lsn(20));
    await settle(30);
    await journal.close();
    const calls: string[] = [];
    disk.observer = ({ name }) => {
      calls.push(name);
      return undefined;
    };
    await reader.close();
    await settle(30);
    expect(calls).toEqual(["close"]);
  });

  it("J18 reads go on when the journal has failed closed", async () => {
    const disk = new MemoryDisk();
    const { journal } = await open(disk);
    await fill(journal, 10);
    disk.observer = failing((call) => call.name === "write", "EIO");
    journal.append([entry(11)]);
    await settle();
    expect(journal.stats().failed).not.toBeNull();
    expect(await rest(journal.read(lsn(1)))).toEqual(numbered(1, 10));
  });
});

describe("J13 checksums", () => {
  it("memory segments carry none, and nothing looks for one", async () => {
    const memory: Uint8Array[] = [];
    const journal = new MemoryJournal({
      ...{ random: seededRandom(1), segmentBytes: 16 * KiB, budgetBytes: 64 * KiB },
      events: { onDurable: () => undefined, onFailed: () => undefined },
      allocate: (bytes) => {
        const segment = new Uint8Array(bytes);
        memory.push(segment);
        return segment;
      },
    });
    journal.append([entry(1, 7)]);
    journal.append([entry(2, 5)]);
    await journal.flush();
    // Each entry is its length and its bytes, back to back; the rest is untouched.
    const expected = new Uint8Array(16 * KiB);
    expected.set([7, 0, 0, 0, ...entry(1, 7), 5, 0, 0, 0, ...entry(2, 5)]);
    expect(memory).toEqual([expected]);
    memory[0]?.fill(255, 4, 11);
    const [first] = (await journal.read(lsn(1)).next()) ?? [];
    expect(first?.bytes).toEqual(new Uint8Array(7).fill(255));
  });

  it("disk segments always do: a flipped bit is never given to a reader", async () => {
    for (const volatile of [false, true]) {
      const disk = new MemoryDisk({ volatile });
      const { journal } = await open(disk);
      journal.append([entry(1, 500)]);
      await journal.flush();
      const bytes = disk.files().get("/data/journal/0/0000000000000001.segment");
      const at = 4096 + 100;
      bytes?.set([(bytes[at] ?? 0) ^ 1], at);
      expect(await journal.read(lsn(1)).next()).toBeUndefined();
    }
  });
});

describe("the journal in memory", () => {
  it("is full at its budget, 507 with both numbers, and goes on as soon as it is trimmed", async () => {
    const advances: number[] = [];
    const journal = new MemoryJournal({
      ...{ random: seededRandom(1), segmentBytes: 16 * KiB, budgetBytes: 32 * KiB },
      events: { onDurable: (durable) => advances.push(durable), onFailed: () => undefined },
    });
    expect([journal.storage, journal.id.length]).toEqual(["memory", 32]);
    for (let i = 0; i < 10; i++) {
      journal.append([entry(i, 3000)]);
    }
    const refused = refusal(() => journal.append([entry(11, 3000)]));
    expect([refused.code, refused.status]).toEqual(["disk_full", 507]);
    expect(refused.message).toBe(
      "the journal holds 32768 of its budget of 32768 bytes, which leaves no room for a segment of 16384",
    );
    await journal.flush();
    expect(advances).toEqual([10]);
    journal.trim(lsn(5));
    expect(journal.append([entry(11, 3000)])).toBe(11);
    expect(journal.stats()).toMatchObject({ segments: 2, spares: 0, bytesHeld: 32 * KiB });
    expect(refusal(() => journal.append([entry(1, 16 * KiB)])).code).toBe("record_too_large");
    const closed = journal.close();
    expect(refusal(() => journal.append([entry(12)])).code).toBe("shutting_down");
    await closed;
    expect(advances).toEqual([10, 11]);
  });

  it("J9 J10 holds its place in a shared budget and gives it back", async () => {
    const budget = new SegmentBudget(48 * KiB);
    const events = { onDurable: () => undefined, onFailed: () => undefined };
    const options = { random: seededRandom(1), segmentBytes: 16 * KiB, budget, events };
    const journals = [new MemoryJournal(options), new MemoryJournal(options)];
    for (const journal of journals) {
      for (let i = 0; i < 30; i++) {
        try {
          journal.append([entry(i, 3000)]);
        } catch (error) {
          expect((error as ForebayError).code).toBe("disk_full");
        }
        expect(budget.heldBytes).toBeLessThanOrEqual(48 * KiB + 2 * 32 * KiB);
      }
    }
    expect(journals.map((journal) => journal.stats().segments)).toEqual([3, 2]);
    for (const journal of journals) {
      await journal.flush();
      journal.trim(journal.durable);
    }
    // More is held than the cap allows: what is trimmed goes back, and is not kept as a spare.
    expect(budget.heldBytes).toBe(48 * KiB);
    for (const journal of journals) {
      await journal.close();
    }
    expect([budget.heldBytes, budget.members]).toEqual([0, 0]);
  });
});

it("J24 several marks, each monotone: the journal is trimmed to the lowest", () => {
  const trims: number[] = [];
  const marksOf = new TrimMarks({ trim: (upTo) => trims.push(upTo) }, ["a", "b"]);
  marksOf.raise("a", lsn(7));
  marksOf.raise("b", lsn(3));
  marksOf.raise("b", lsn(2));
  marksOf.raise("b", lsn(9));
  expect(trims).toEqual([0, 3, 3, 7]);
  expect(marksOf.effective).toBe(7);
  expect(() => {
    marksOf.raise("c", lsn(1));
  }).toThrow("c has a mark");
});

describe("slots of a second user", () => {
  it("share the lock and the budget, and are adopted by the next process", async () => {
    const disk = new MemoryDisk();
    await disk.mkdir("/data");
    const lock = await lockData(disk, "/data");
    const budget = new SegmentBudget(1024 * KiB);
    const slot = async (name: string) => {
      const replayed: string[] = [];
      const journal = await openJournal(
        {
          ...{ dir: "/data", slot: name, lock, disk, budget, segmentBytes: 16 * KiB },
          ...{ clock: new ManualClock(), random: seededRandom(name.length) },
          events: { onDurable: () => undefined, onFailed: () => undefined },
        },
        (_lsn, bytes) => replayed.push(marks([bytes])[0] ?? ""),
      );
      return { journal, replayed };
    };
    const one = await slot("relay/a");
    const two = await slot("relay/bb");
    const streams = await slot("journal/0");
    await fill(one.journal, 12);
    await fill(two.journal, 5);
    expect(budget.members).toBe(3);
    await one.journal.close();
    await two.journal.close();
    await streams.journal.close();
    expect(budget.heldBytes).toBe(0);
    await lock.release();

    const image = disk.crash(seededRandom(1), 0);
    expect(await image.list("/data/relay")).toEqual(["a", "bb"]);
    const again = await slot("relay/a");
    expect(again.replayed).toHaveLength(12);
    await settle();
    expect(budget.heldBytes).toBe(again.journal.stats().bytesHeld);
    again.journal.trim(lsn(12));
    await again.journal.close();
    expect(budget.heldBytes).toBe(0);
  });
});
