import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MemoryDisk } from "../../../origin/storage/mod.ts";
import { entry, KiB, marks, open, refusal, settle } from "./harness.ts";

describe("journal", () => {
  it("starts empty, gives dense LSNs, and replays what was appended", async () => {
    const disk = new MemoryDisk();
    const first = await open(disk);
    expect([first.journal.reserved, first.journal.durable]).toEqual([0, 0]);
    expect(first.journal.append([entry(1)])).toBe(1);
    expect(first.journal.append([entry(2, 0)])).toBe(2);
    expect(first.journal.append([entry(3).subarray(0, 30), entry(3).subarray(30)])).toBe(3);
    expect([first.journal.reserved, first.journal.durable]).toEqual([3, 0]);
    await first.journal.flush();
    expect(first.journal.durable).toBe(3);
    expect(first.advances).toEqual([3]);
    await first.journal.close();

    const second = await open(disk, { seed: 2 });
    expect(second.replayed).toEqual([entry(1), entry(2, 0), entry(3)]);
    expect([second.journal.reserved, second.journal.durable]).toEqual([3, 3]);
    expect(second.journal.id).toBe(first.journal.id);
    expect(second.journal.id).toMatch(/^[0-9a-f]{32}$/);
    expect(second.journal.append([entry(4)])).toBe(4);
    await second.journal.close();
    expect((await open(disk)).replayed).toHaveLength(4);
  });

  it("J25 holds any mix of sizes over any number of lives", async () => {
    const sizes = fc.oneof(fc.nat(40), fc.nat(3000), fc.constant(8000));
    const turn = fc.array(sizes, { minLength: 1, maxLength: 12 });
    const lives = fc.array(fc.array(turn, { maxLength: 4 }), { minLength: 1, maxLength: 4 });
    const property = fc.asyncProperty(lives, fc.boolean(), async (given, closes) => {
      let disk = new MemoryDisk({ direct: closes });
      const model: Uint8Array[] = [];
      for (const life of given) {
        const { journal, replayed, advances } = await open(disk, { budgetBytes: 8192 * KiB });
        expect(marks(replayed)).toEqual(marks(model));
        for (const lengths of life) {
          for (const length of lengths) {
            const bytes = entry(model.length + 1, length);
            model.push(bytes);
            expect(journal.append([bytes.subarray(0, 3), bytes.subarray(3)])).toBe(model.length);
          }
          await settle(1);
        }
        await journal.flush();
        expect(journal.durable).toBe(model.length);
        expect(advances).toEqual([...new Set(advances)].toSorted((a, b) => a - b));
        if (closes) {
          await journal.close();
        } else {
          disk = disk.crash({ next: () => 0, bytes: () => new Uint8Array(0) }, 0);
        }
      }
      expect(marks((await open(disk)).replayed)).toEqual(marks(model));
    });
    await fc.assert(property, { numRuns: 40 });
  });

  it("copies what it is given: the caller may reuse its memory at once", async () => {
    const disk = new MemoryDisk();
    const { journal } = await open(disk);
    const bytes = entry(1);
    journal.append([bytes]);
    bytes.fill(0);
    await journal.close();
    expect((await open(disk)).replayed).toEqual([entry(1)]);
  });

  it("puts the appends of one turn into one batch, and a lone one into its own at once", async () => {
    const { journal, advances, clock } = await open(new MemoryDisk(), { segmentBytes: 256 * KiB });
    const before = journal.stats();
    for (let i = 1; i <= 64; i++) {
      journal.append([entry(i, 256)]);
    }
    expect(advances).toEqual([]);
    await settle();
    expect(advances).toEqual([64]);
    journal.append([entry(65, 256)]);
    await settle();
    expect(advances).toEqual([64, 65]);
    expect(clock.armed.size).toBe(0);
    const after = journal.stats();
    expect(after.entries).toBe(65);
    expect(after.batches - before.batches).toBe(2);
    expect(after.syncs - before.syncs).toBe(2);
    // 68 + 64 × (4 + 256) = 16,708 bytes are five blocks; 68 + 260 one.
    expect(after.bytesWritten - before.bytesWritten).toBe(6 * 4096);
  });

  it("joins the appends of all callbacks of a turn, not only of one", async () => {
    const { journal, advances } = await open(new MemoryDisk());
    for (let i = 1; i <= 10; i++) {
      journal.append([entry(i)]);
      // The microtasks of one request's callback run before the next request's.
      await new Promise<void>((resolve) => {
        process.nextTick(resolve);
      });
    }
    await settle();
    expect(advances).toEqual([10]);
  });

  it("pads with zeros, not with what was in memory before", async () => {
    const disk = new MemoryDisk();
    const { journal } = await open(disk);
    journal.append([new Uint8Array(3000).fill(255)]);
    await journal.flush();
    journal.append([new Uint8Array(10).fill(255)]);
    await journal.flush();
    const bytes = disk.files().get("/data/journal/0/0000000000000001.segment");
    expect(bytes?.subarray(8192 + 72, 8192 + 82)).toEqual(new Uint8Array(10).fill(255));
    expect(bytes?.subarray(8192 + 82, 12288)).toEqual(new Uint8Array(4096 - 82));
  });

  it("J7 J4 resolves flush at once for what is durable, and on each advance for what is not", async () => {
    const { journal } = await open(new MemoryDisk());
    await journal.flush();
    journal.append([entry(1)]);
    const order: string[] = [];
    const one = journal.flush().then(() => order.push(`one at ${journal.durable}`));
    await settle();
    journal.append([entry(2)]);
    const two = journal.flush().then(() => order.push(`two at ${journal.durable}`));
    await Promise.all([one, two]);
    expect(order).toEqual(["one at 1", "two at 2"]);
  });

  it("J4 close flushes, wakes waiters, and refuses appends from then on", async () => {
    const disk = new MemoryDisk();
    const { journal } = await open(disk);
    journal.append([entry(1)]);
    const flushed = journal.flush();
    const closed = journal.close();
    expect(refusal(() => journal.append([entry(2)])).code).toBe("shutting_down");
    await flushed;
    await closed;
    await journal.close();
    expect((await open(disk)).replayed).toEqual([entry(1)]);
  });

  it("J33 refuses an entry too large for a segment before anything moves", async () => {
    const disk = new MemoryDisk();
    const { journal } = await open(disk);
    const largest = 16 * KiB - 3 * 4096 + 4096 - 68 - 4;
    const before = journal.stats();
    const refused = refusal(() => journal.append([new Uint8Array(largest), entry(1, 1)]));
    expect(refused.code).toBe("record_too_large");
    expect(refused.message).toBe(
      `a journal entry of ${largest + 1} bytes is larger than the limit of ${largest}`,
    );
    expect(journal.reserved).toBe(0);
    await settle();
    expect(journal.stats()).toEqual(before);
    expect(journal.append([new Uint8Array(largest)])).toBe(1);
    await journal.close();
    expect((await open(disk)).replayed[0]).toHaveLength(largest);
  });

  it("J33 takes entries up to entryBytesMax in segments of the default size", async () => {
    const disk = new MemoryDisk({ volatile: true });
    const { journal } = await open(disk, { segmentBytes: 64 * KiB * KiB, budgetBytes: 2 ** 31 });
    const refused = refusal(() => journal.append([new Uint8Array(9 * KiB * KiB + 1)]));
    expect(refused.message).toContain("9437185 bytes is larger than the limit of 9437184");
    const large = entry(7, 9 * KiB * KiB);
    journal.append([entry(1)]);
    journal.append([large]);
    journal.append([entry(2)]);
    await journal.flush();
    expect(journal.stats().batches).toBe(3);
    expect(journal.storage).toBe("memory");
  });

  it("J30 gauges start from what was recovered", async () => {
    const disk = new MemoryDisk();
    const first = await open(disk);
    for (let i = 1; i <= 8; i++) {
      first.journal.append([entry(i, 3000)]);
      await first.journal.flush();
    }
    await first.journal.close();
    const { segments } = first.journal.stats();
    expect(segments).toBeGreaterThanOrEqual(4);
    const { journal } = await open(disk);
    expect(journal.stats()).toMatchObject({ segments, bytesHeld: segments * 16 * KiB, entries: 0 });
    expect([journal.reserved, journal.durable]).toEqual([8, 8]);
  });

  it("writes buffered, with a sync per batch, where O_DIRECT is refused", async () => {
    const disk = new MemoryDisk({ direct: false });
    const { journal } = await open(disk);
    expect(journal.storage).toBe("buffered");
    journal.append([entry(1)]);
    await journal.flush();
    expect((await open(disk.crash({ next: () => 1, bytes: () => entry(0) }, 0))).replayed).toEqual([
      entry(1),
    ]);
  });
});
