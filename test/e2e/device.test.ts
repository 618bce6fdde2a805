import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Collectd, metricOf, type Metric } from "./collectd.ts";
import { startEdge, startOrigin } from "./harness.ts";
import { drained } from "./outboxes.ts";
import { readAll } from "./stream.ts";

const stream = "devices/device-1/metrics";
const key = "device-test-key";

const byMetric = (metrics: readonly Metric[]): Map<string, string[]> => {
  const groups = new Map<string, string[]>();
  for (const { name, time } of metrics) {
    groups.set(name, [...(groups.get(name) ?? []), time]);
  }
  return groups;
};

test("I8 a real collectd posts this machine's metrics: complete, in order, once", async () => {
  const dir = mkdtempSync(join(tmpdir(), "forebay-collectd-"));
  const origin = await startOrigin({ key });
  const edge = await startEdge({ originUrl: origin.url, key });
  const device = await Collectd.start(dir, `${edge.url}/v1/ingest/${stream}?key=${key}`);
  try {
    await new Promise((resolve) => setTimeout(resolve, 6000));
    await device.stop();
    const status = await drained(edge.url, stream, key);

    const collected = await device.collected();
    const stored = (await readAll<Record<string, unknown>>(origin.url, stream)).map(metricOf);
    expect(collected.length, await device.log()).toBeGreaterThan(200);
    expect(status.ledger).toMatchObject({ accepted: collected.length, dead: 0, refused: 0 });
    // once and complete: the same times for the same metrics; in order: as collectd's own lines stand
    expect(stored.length).toBe(collected.length);
    const [ours, theirs] = [byMetric(stored), byMetric(collected)];
    expect([...ours.keys()].sort()).toEqual([...theirs.keys()].sort());
    for (const [name, times] of theirs) {
      expect(ours.get(name), name).toEqual(times);
    }
    const load = collected.find(({ name }) => name.startsWith("load"));
    const sameLoad = stored.find(({ name, time }) => name === load?.name && time === load.time);
    expect(sameLoad?.values.map((v) => v.toFixed(6))).toEqual(
      load?.values.map((v) => v.toFixed(6)),
    );
  } finally {
    await device.stop();
    await edge.stop();
    await origin.stop();
    rmSync(dir, { recursive: true, force: true });
  }
});
