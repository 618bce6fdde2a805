import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { startEdge, startOrigin, type EdgeProcess, type OriginProcess } from "./harness.ts";
import { LinkProxy, type LinkMode } from "./linkProxy.ts";
import { failedTwice, ingest, range } from "./outboxClient.ts";
import { drained, outboxOf, outboxStatus } from "./outboxes.ts";
import { readAll } from "./stream.ts";
import { until } from "./until.ts";

/** The outbox in a real workerd against a real origin process, with faults on the wire between them. */
let origin: OriginProcess;
let proxy: LinkProxy;
let edge: EdgeProcess;

beforeAll(async () => {
  origin = await startOrigin();
  proxy = new LinkProxy(origin.port);
  edge = await startEdge({ originUrl: await proxy.listen() });
});
beforeEach(() => {
  proxy.set("pass");
});
afterAll(async () => {
  await edge.stop();
  await proxy.close();
  await origin.stop();
});

const ackOf = async (position: string, waitMs: number) =>
  (await fetch(`${edge.url}/v1/acks/${position}?waitMs=${waitMs}`)).json();

const faults: readonly [string, LinkMode][] = [
  ["refused", "refuse"],
  ["cut inside the request", "cutRequest"],
  ["cut before any byte of the reply", "cutReply"],
  ["cut inside the reply's body", "truncateReply"],
];

test.each(faults)(
  "F1 the link is %s: every acknowledged record arrives once, in order",
  async (name, mode) => {
    const stream = `cut/${name.replaceAll(" ", "-")}`;
    await ingest(edge.url, stream, range(0, 10));
    proxy.set(mode);
    for (let from = 10; from < 60; from += 10) {
      await ingest(edge.url, stream, range(from, from + 10));
    }
    await failedTwice(edge.url, stream);
    proxy.set("pass");
    const status = await drained(edge.url, stream);
    expect(await readAll(origin.url, stream)).toEqual(range(0, 60));
    expect(status.ledger.accepted).toBe(status.ledger.acknowledged);
  },
);

test("F1 an origin that takes bytes and never answers: the POST ends within 20 s, and the backlog drains", async () => {
  const stream = "stalled";
  proxy.set("stall");
  await ingest(edge.url, stream, range(0, 5));
  const status = await until("the stalled POST was given up", async () => {
    const now = await outboxStatus(edge.url, stream);
    return now.attempts >= 1 ? now : undefined;
  });
  expect(status.lastError).toMatch(/no complete answer within 20000 ms/);
  // Reads of the status answer meanwhile, and appends are taken.
  await ingest(edge.url, stream, range(5, 10));
  proxy.set("pass");
  await drained(edge.url, stream);
  expect(await readAll(origin.url, stream)).toEqual(range(0, 10));
}, 60_000);

test("F22 an ack waits for durable and is woken by the advance", async () => {
  const stream = "acks";
  const first = await ingest(edge.url, stream, [1]);
  expect(await ackOf(first.position, 10_000)).toEqual({
    position: first.position,
    received: true,
    durable: true,
  });
  proxy.set("refuse");
  const second = await ingest(edge.url, stream, [2]);
  expect(await ackOf(second.position, 200)).toMatchObject({ durable: false });
  const waiting = ackOf(second.position, 25_000);
  proxy.set("pass");
  expect(await waiting).toMatchObject({ received: true, durable: true });
});

test("F20 a stream deleted or closed while its frames wait blocks no other stream of the outbox", async () => {
  const partition = outboxOf("gone/0");
  const [gone, shut, stays] = range(0, 1000)
    .map((i) => `gone/${i}`)
    .filter((stream) => outboxOf(stream) === partition);
  if (gone === undefined || shut === undefined || stays === undefined) {
    throw new Error("three streams of one partition are needed");
  }
  for (const stream of [gone, shut, stays]) {
    await ingest(edge.url, stream, [0]);
  }
  await drained(edge.url, gone);
  proxy.set("refuse");
  for (const stream of [gone, shut, stays]) {
    await ingest(edge.url, stream, [1]);
  }
  const at = (stream: string) => `${origin.url}/v1/stream/${stream}`;
  expect((await fetch(at(gone), { method: "DELETE" })).status).toBe(204);
  const closed = await fetch(at(shut), { method: "POST", headers: { "stream-closed": "true" } });
  expect(closed.status).toBe(204);
  proxy.set("pass");
  const status = await drained(edge.url, gone);
  expect(await readAll(origin.url, stays)).toEqual([0, 1]);
  expect(await readAll(origin.url, shut)).toEqual([0]);
  expect(status.ledger).toMatchObject({ dead: 0, accepted: status.ledger.acknowledged });
  const quarantined = await readAll<{ stream: string; code: string }>(
    origin.url,
    "_forebay/quarantine",
  );
  expect(quarantined.filter(({ stream }) => stream === shut).map(({ code }) => code)).toEqual([
    "stream_closed",
  ]);
});
