import { afterAll, beforeAll, expect, test } from "vitest";
import { startEdge, startOrigin, type EdgeProcess, type OriginProcess } from "./harness.ts";
import { LinkProxy } from "./linkProxy.ts";
import { failedTwice, ingest, range } from "./outboxClient.ts";
import { drained } from "./outboxes.ts";
import { readAll } from "./stream.ts";
import { until } from "./until.ts";

/** The lives of an outbox in a real workerd: killed with a backlog, and asleep without one. */
let origin: OriginProcess;
let proxy: LinkProxy;
let proxyUrl: string;
let edge: EdgeProcess;

beforeAll(async () => {
  origin = await startOrigin();
  proxy = new LinkProxy(origin.port);
  proxyUrl = await proxy.listen();
  edge = await startEdge({ originUrl: proxyUrl });
});
afterAll(async () => {
  await edge.stop();
  await proxy.close();
  await origin.stop();
});

test("F1 F2 origin and edge killed with a backlog: it drains after the restart, with no new traffic", async () => {
  const stream = "killed";
  await ingest(edge.url, stream, range(0, 20));
  proxy.set("refuse");
  for (let from = 20; from < 100; from += 20) {
    await ingest(edge.url, stream, range(from, from + 20));
  }
  await failedTwice(edge.url, stream);
  await origin.crash();
  const { dataDir } = edge;
  await edge.crash();
  origin = await startOrigin({ dataDir: origin.dataDir, port: origin.port });
  proxy.set("pass");
  edge = await startEdge({ originUrl: proxyUrl, dataDir });
  // Only the origin is asked: nothing but its own alarm wakes the outbox.
  const records = await until("the origin has all records", async () => {
    const now = await readAll<number>(origin.url, stream);
    return now.length >= 100 ? now : undefined;
  });
  expect(records).toEqual(range(0, 100));
  expect((await drained(edge.url, stream)).frames).toBe(0);
}, 60_000);

test("F4 a quiet outbox hibernates: after 10 s the next write constructs it again, and no connection is used meanwhile", async () => {
  const stream = "quiet";
  await ingest(edge.url, stream, [1]);
  const before = await drained(edge.url, stream);
  const connections = proxy.connections;
  await new Promise((resolve) => setTimeout(resolve, 13_000));
  expect(proxy.connections).toBe(connections);
  await ingest(edge.url, stream, [2]);
  const after = await drained(edge.url, stream);
  expect(after.constructions).toBe(before.constructions + 1);
  expect(after.boot).toBeGreaterThan(before.boot);
  expect(await readAll(origin.url, stream)).toEqual([1, 2]);
}, 60_000);
