import { readFileSync } from "node:fs";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { chainBreak, decodeBatchHeader } from "../../../origin/journal/batchHeader.ts";
import { errorCode } from "../../../origin/storage/mod.ts";
import { crc32c } from "../../../shared/crc/mod.ts";
import {
  areaBytes,
  cleanUp,
  salt,
  UnderTest,
  type BackendName,
  within,
} from "../native/committerUnderTest.ts";
import { buildTestAddon, errno, loadTestAddon, pause } from "../native/testAddon.ts";

const addon = await buildTestAddon();
const layer = addon === undefined ? undefined : loadTestAddon(addon);
const native = layer === undefined ? [] : (["uring", "threads"] as const);
const backends: readonly BackendName[] = [...native, "node", "buffered"];
const open: UnderTest[] = [];

async function started(backend: BackendName): Promise<UnderTest> {
  const under = await new UnderTest(backend, layer).start();
  open.push(under);
  return under;
}

afterEach(async () => {
  for (const under of open.splice(0)) {
    await under.close();
  }
});
afterAll(cleanUp);

/** Walks the batches of a file as recovery does; returns the first byte of each payload, with its length. */
function chainOf(path: string): [fill: number, length: number][] {
  const bytes = readFileSync(path);
  const found: [number, number][] = [];
  let end = { seq: 0, term: 1, lsn: 0, crc: 0 };
  for (let at = 4096; at < bytes.length;) {
    const block = new Uint8Array(bytes.buffer, bytes.byteOffset + at, bytes.length - at);
    const { header, crc } = decodeBatchHeader(block, salt, path) as {
      header?: Exclude<ReturnType<typeof decodeBatchHeader>["header"], undefined>;
      crc: number;
    };
    if (header === undefined) {
      break;
    }
    expect(chainBreak(header, end, 1)).toBeUndefined();
    expect(header.durableSeq).toBeLessThan(header.seq);
    expect(crc32c(block.subarray(68, 68 + header.length))).toBe(header.payloadCrc);
    const padding = block.subarray(
      68 + header.length,
      Math.ceil((68 + header.length) / 4096) * 4096,
    );
    expect(padding.every((byte) => byte === 0)).toBe(true);
    found.push([block[72] ?? -1, header.length - 4]);
    end = { seq: header.seq, term: header.term, lsn: header.firstLsn, crc };
    at += Math.ceil((68 + header.length) / 4096) * 4096;
  }
  return found;
}

describe.each(backends)("%s", (backend) => {
  it("makes batches durable in the order they were submitted in, chained as FORMAT.md says", async () => {
    const under = await started(backend);
    const model: [number, number][] = [];
    for (let i = 0; i < 40; i++) {
      const length = [1, 100, 4000, 4024, 4025, 20_000][i % 6] ?? 0;
      while (under.committer.inFlight >= under.committer.inFlightMax) {
        await under.told();
      }
      under.submit(length, i + 1);
      model.push([i + 1, length]);
    }
    await under.durable(40);
    await under.committer.settled();
    expect(under.committer.inFlight).toBe(0);
    expect(under.advances).toEqual([...new Set(under.advances)].toSorted((a, b) => a - b));
    expect(chainOf(under.path)).toEqual(model);
    const blocks = model.reduce((sum, [, length]) => sum + Math.ceil((length + 72) / 4096), 0);
    expect(under.counters).toMatchObject({ batches: 40, syncs: 40, bytesWritten: blocks * 4096 });
  });

  it("writes the same bytes as every other, one batch at a time", async () => {
    const [ours, node] = [await started(backend), await started("node")];
    for (let i = 1; i <= 5; i++) {
      for (const under of [ours, node]) {
        under.submit(i * 1500, i);
        await under.durable(i);
      }
    }
    const [a, b] = [readFileSync(ours.path), readFileSync(node.path)];
    expect(a.equals(b)).toBe(true);
  });

  it("goes on in the next file once all of the first is durable", async () => {
    const under = await started(backend);
    under.submit(100, 1);
    await under.durable(1);
    const first = under.path;
    await under.start("next");
    under.submit(100, 2);
    await under.durable(2);
    const second = readFileSync(under.path);
    expect([readFileSync(first)[4096 + 72], second[4096 + 72]]).toEqual([1, 2]);
  });

  it("takes a batch larger than its areas, and gives such memory back", async () => {
    const under = await started(backend);
    for (let i = 1; i <= 12; i++) {
      under.submit(3 * areaBytes, i);
      await under.durable(i);
    }
    expect(chainOf(under.path).map(([fill]) => fill)).toEqual(
      Array.from({ length: 12 }, (_, i) => i + 1),
    );
  });

  it("J18 a refused write is told once with its code; nothing behind it is acknowledged", async () => {
    const under = await started(backend);
    under.submit(100);
    await under.durable(1);
    await under.breakFile();
    for (let i = 0; i < 3; i++) {
      under.submit(100);
    }
    while (under.failures.length === 0) {
      await under.told();
    }
    await within(1000, under.committer.settled());
    expect(under.failures.map(errorCode)[0]).toBe("EBADF");
    expect(under.advances).toEqual([1]);
  });

  it("settled resolves at once when nothing is in flight", async () => {
    const under = await started(backend);
    await expect(within(100, under.committer.settled())).resolves.toBeUndefined();
  });
});

describe.skipIf(layer === undefined).each(["uring", "threads"] as const)("%s", (backend) => {
  const started2 = async (): Promise<UnderTest & { handle: object }> =>
    (await started(backend)) as UnderTest & { handle: object };

  it("J26 after EIO no further batch is written, though it was handed over", async () => {
    const under = await started2();
    layer?.testFault(under.handle as never, 1, -errno.EIO);
    under.submit(100, 1);
    await under.durable(1);
    layer?.testPause(under.handle as never, pause.beforeParked, 30_000);
    under.submit(100, 2);
    await under.told();
    await within(1000, under.committer.settled());
    under.submit(100, 3);
    await within(1000, under.committer.settled());
    expect(under.failures.map((error) => error.message)).toEqual([
      `EIO: synced write to ${under.path} (errno 5)`,
    ]);
    expect(under.advances).toEqual([1]);
    // The second may have reached the disk: its outcome is unknown. The third was never written.
    expect(chainOf(under.path).map(([fill]) => fill)).toEqual([1, 2]);
  });

  it.each([4096, 8192, 5000])("a short write of %d bytes is gone on with", async (bytes) => {
    const under = await started2();
    layer?.testFault(under.handle as never, 0, bytes);
    under.submit(20_000, 9);
    await under.durable(1);
    expect(chainOf(under.path)).toEqual([[9, 20_000]]);
    expect(under.failures).toEqual([]);
  });

  it.each([0, 100])("a write of %d bytes makes no progress and is EIO", async (bytes) => {
    const under = await started2();
    layer?.testFault(under.handle as never, 0, bytes);
    under.submit(20_000, 9);
    await under.told();
    expect(under.failures.map(errorCode)).toEqual(["EIO"]);
    expect(under.advances).toEqual([]);
  });

  it.each([4, 11])("errno %d (interrupted, try again) is tried again", async (number) => {
    const under = await started2();
    layer?.testFault(under.handle as never, 0, -number);
    under.submit(100, 9);
    await under.durable(1);
    expect(under.failures).toEqual([]);
  });

  it("J2 at most one doorbell and one wake a commit; none of the two while idle (J1)", async () => {
    const under = await started2();
    const committer = under.committer as unknown as { bells: number; wakes: number };
    for (let i = 1; i <= 20; i++) {
      under.submit(100);
      await under.durable(i);
    }
    expect(committer.bells).toBeLessThanOrEqual(20);
    expect(committer.wakes).toBeLessThanOrEqual(20);
    const before = [committer.bells, committer.wakes];
    await new Promise((resolve) => {
      setTimeout(resolve, 200);
    });
    expect([committer.bells, committer.wakes]).toEqual(before);
  });

  it.runIf(backend === "threads")("J2 no doorbell while every write is busy", async () => {
    const under = await started2();
    const committer = under.committer as unknown as { bells: number };
    layer?.testPause(under.handle as never, pause.write, 300_000);
    for (let i = 0; i < 4; i++) {
      under.submit(100);
      await new Promise((resolve) => {
        setTimeout(resolve, 20);
      });
    }
    const before = committer.bells;
    for (let i = 0; i < 4; i++) {
      under.submit(100);
    }
    expect(committer.bells).toBe(before);
    await under.durable(8);
  });

  it("a descriptor that names no memory or place fails it closed with EINVAL", async () => {
    const under = await started2();
    under.submit(100);
    await under.durable(1);
    under.skew();
    under.submit(100);
    await under.told();
    expect(under.failures.map(errorCode)).toEqual(["EINVAL"]);
  });
});
