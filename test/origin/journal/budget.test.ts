import { describe, expect, it } from "vitest";
import { SegmentBudget } from "../../../origin/journal/mod.ts";
import { MemoryDisk } from "../../../origin/storage/mod.ts";
import { lsn } from "../../../shared/ids/mod.ts";
import { entry, failing, KiB, open, settle, type Opened } from "./harness.ts";
import { fill, segmentsOf } from "./segmentsUnderTest.ts";

describe("segment budget", () => {
  it("J9 what a ring holds is charged once; its close gives everything back", async () => {
    const budget = new SegmentBudget(256 * KiB);
    const disk = new MemoryDisk();
    const opened = await open(disk, { budget });
    expect([budget.heldBytes, budget.members]).toEqual([16 * KiB, 1]);
    await fill(opened, 5);
    expect(budget.heldBytes).toBe(segmentsOf(disk).length * 16 * KiB);
    opened.journal.trim(lsn(4));
    await settle(20);
    expect(budget.heldBytes).toBe(segmentsOf(disk).length * 16 * KiB);
    await opened.journal.close();
    expect([budget.heldBytes, budget.members]).toEqual([0, 0]);
    const again = await open(disk, { budget });
    expect(budget.heldBytes).toBe(segmentsOf(disk).length * 16 * KiB);
    await again.journal.close();
  });

  it("J9 a failed rotation followed by close leaves the budget at its value before", async () => {
    const budget = new SegmentBudget(256 * KiB);
    const disk = new MemoryDisk();
    const opened = await open(disk, { budget });
    await fill(opened, 2);
    disk.observer = failing((call) => call.name === "write" && /manifest/.test(call.path), "EIO");
    opened.journal.append([entry(3, 3000)]);
    await settle(20);
    expect(opened.failures).toHaveLength(1);
    expect(budget.heldBytes).toBe(32 * KiB);
    disk.observer = undefined;
    await opened.journal.close();
    expect([budget.heldBytes, budget.members]).toEqual([0, 0]);
  });

  it("J9 repeated failed preparations and the one that succeeds charge exactly one segment", async () => {
    const budget = new SegmentBudget(256 * KiB);
    const disk = new MemoryDisk({ capacityBytes: 33 * KiB });
    const opened = await open(disk, { budget });
    await fill(opened, 2);
    expect(opened.journal.stats().full).not.toBeNull();
    expect(budget.heldBytes).toBe(16 * KiB);
    for (let i = 0; i < 5; i++) {
      opened.clock.advance(2000);
      expect(() => opened.journal.append([entry(3, 3000)])).toThrow("16384");
      await settle();
    }
    expect(budget.heldBytes).toBe(16 * KiB);
    disk.capacityBytes = 1024 * KiB;
    opened.clock.advance(2000);
    expect(() => opened.journal.append([entry(3, 3000)])).toThrow("16384");
    await settle();
    expect(budget.heldBytes).toBe(32 * KiB);
    await fill(opened, 1);
    expect(budget.heldBytes).toBe(32 * KiB);
    expect(opened.shortages.filter((reason) => reason === null)).toHaveLength(1);
    await opened.journal.close();
  });

  it("J10 two rings on one budget: never above the cap plus a working set each, never stuck", async () => {
    const cap = 64 * KiB;
    const budget = new SegmentBudget(cap);
    const disks = [new MemoryDisk(), new MemoryDisk()];
    const rings = [await open(disks[0] as MemoryDisk, { budget })];
    let refused = 0;
    const grow = async (opened: Opened, count: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        try {
          opened.journal.append([entry(opened.journal.reserved + 1, 3000)]);
        } catch (error) {
          refused += 1;
          expect((error as Error).message).toContain(`its budget of ${cap} bytes`);
        }
        await settle(3);
        expect(budget.heldBytes).toBeLessThanOrEqual(cap + rings.length * 32 * KiB);
      }
    };
    // The first takes all there is.
    await grow(rings[0] as Opened, 12);
    expect(budget.heldBytes).toBe(cap);
    expect(refused).toBeGreaterThan(0);
    // The second gets its working set past the cap, and each goes on as soon as it trims its own.
    rings.push(await open(disks[1] as MemoryDisk, { budget }));
    await grow(rings[1] as Opened, 12);
    expect(budget.heldBytes).toBe(cap + 32 * KiB);
    for (let round = 0; round < 20; round++) {
      for (const ring of rings) {
        const before = ring.journal.durable;
        ring.journal.trim(ring.journal.durable);
        await settle(20);
        await grow(ring, 3);
        expect(ring.journal.durable).toBeGreaterThan(before);
      }
    }
    for (const ring of rings) {
      await ring.journal.close();
    }
    expect([budget.heldBytes, budget.members]).toEqual([0, 0]);
    const sizes = await Promise.all(disks.map(async (disk) => (await open(disk)).journal.durable));
    expect(sizes).toEqual(rings.map(({ journal }) => journal.durable));
  });

  it("J9 J15 a segment that was planned before it could be made is charged once when a trimmed file becomes it", async () => {
    const budget = new SegmentBudget(256 * KiB);
    // Room for two segments, manifest and watermark.
    const disk = new MemoryDisk({ capacityBytes: 52 * KiB });
    const opened = await open(disk, { budget });
    await fill(opened, 3);
    opened.journal.append([entry(4, 3000)]);
    opened.journal.append([entry(5, 3000)]);
    await settle(20);
    expect([opened.journal.durable, segmentsOf(disk)]).toEqual([4, [1, 2]]);
    expect(budget.heldBytes).toBe(48 * KiB);
    opened.journal.trim(lsn(2));
    await settle(20);
    expect([opened.journal.durable, segmentsOf(disk)]).toEqual([5, [2, 3]]);
    expect(budget.heldBytes).toBe(32 * KiB);
    await opened.journal.close();
    expect(budget.heldBytes).toBe(0);
  });

  it("J10 while more is held than the cap allows, trimmed files are given back and not kept", async () => {
    const budget = new SegmentBudget(256 * KiB);
    const neighbour = budget.register(16 * KiB);
    const disk = new MemoryDisk();
    const opened = await open(disk, { budget });
    await fill(opened, 9);
    neighbour.adopt(16);
    opened.journal.trim(lsn(8));
    await settle(20);
    expect(segmentsOf(disk)).toEqual([5]);
    expect(opened.journal.stats()).toMatchObject({ segments: 1, spares: 0 });
    expect(budget.heldBytes).toBe(17 * 16 * KiB);
  });

  it("J9 deregistering while a charge is out releases exactly once", () => {
    const budget = new SegmentBudget(100);
    const [one, two] = [budget.register(10), budget.register(10)];
    expect([one.charge(), one.charge(), two.charge()]).toEqual([true, true, true]);
    one.deregister();
    one.release(2);
    one.deregister();
    expect([budget.heldBytes, one.registered, two.registered]).toEqual([10, false, true]);
    expect(() => one.charge()).toThrow("only a registered ring is charged");
    expect(() => {
      two.release(2);
    }).toThrow("a ring gives back what it holds");
    two.adopt(20);
    expect([budget.overdrawn, two.affords(), two.charge()]).toEqual([true, false, false]);
    two.deregister();
    expect(budget.heldBytes).toBe(0);
  });
});
