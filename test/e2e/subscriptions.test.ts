import type { JSONWebKeySet } from "jose";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isSigned, type Receiver, startReceiver } from "../webhookReceiver.ts";
import { startEdge, startOrigin, type EdgeProcess, type OriginProcess } from "./harness.ts";
import { until } from "./until.ts";

/** Webhooks and workers that come by the edge, and an origin that is killed under them. */
const key = "a-key-for-this-test";
let origin: OriginProcess;
let edge: EdgeProcess;
let receiver: Receiver;

beforeAll(async () => {
  receiver = await startReceiver();
  origin = await startOrigin({ key });
  edge = await startEdge({ originUrl: origin.url, key });
});
afterAll(async () => {
  receiver.close();
  await edge.stop();
  await origin.stop();
});

const keyed = { authorization: `Bearer ${key}`, "content-type": "application/json" };

async function send(
  method: string,
  url: string,
  body: unknown = null,
  headers: Record<string, string> = keyed,
): Promise<{ status: number; json: Record<string, unknown> }> {
  const response = await fetch(url, {
    method,
    headers,
    body: body === null ? null : JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, json: text === "" ? {} : JSON.parse(text) };
}

const eventually = (what: string, holds: () => boolean | Promise<boolean>): Promise<true> =>
  until(what, async () => ((await holds()) ? true : undefined));

const subscription = (id: string): string => `${edge.url}/v1/stream/__ds/subscriptions/${id}`;
const stream = (path: string): string => `${edge.url}/v1/stream/${path}`;

test("a webhook asked for at the edge calls back through it, and outlives a killed origin", async () => {
  receiver.answer = { status: 503, body: "" };
  const made = await send("PUT", subscription("hook"), {
    type: "webhook",
    pattern: "orders/**",
    webhook: { url: receiver.url },
    lease_ttl_ms: 60_000,
  });
  expect(made.status).toBe(201);
  expect((await send("PUT", stream("orders/eu/1"), [{ n: 1 }, { n: 2 }])).status).toBe(201);
  await eventually("the first webhook", () => receiver.received.length >= 1);
  const before = receiver.received[0]?.json;

  await origin.crash();
  const restarted = await startOrigin({ key, dataDir: origin.dataDir, port: origin.port });
  origin = restarted;
  receiver.answer = { status: 200, body: "{}" };
  const seen = receiver.received.length;
  await eventually("the same wake from the next process", () => receiver.received.length > seen);
  const webhook = receiver.received.at(-1);
  if (webhook === undefined) {
    throw new Error("nothing came");
  }
  // Same id, generation and token: what the receiver was told before the crash stays valid.
  expect(webhook.json).toEqual(before);
  const jwks = await send("GET", stream("__ds/jwks.json"), null, {});
  expect(await isSigned(webhook, jwks.json as unknown as JSONWebKeySet)).toBe(true);

  const { callback_url, callback_token, wake_id, generation, streams } = webhook.json;
  expect(callback_url).toBe(`${subscription("hook")}/callback`);
  const acks = streams.map(({ path, tail_offset }) => ({ stream: path, offset: tail_offset }));
  const token = { authorization: `Bearer ${callback_token}`, "content-type": "application/json" };
  const report = { wake_id, generation, acks, done: true };
  expect(await send("POST", callback_url, report, token)).toEqual({
    status: 200,
    json: { ok: true, next_wake: false },
  });
  expect((await send("POST", callback_url, report, token)).json["error"]).toMatchObject({
    code: "FENCED",
  });
  const shown = await send("GET", subscription("hook"));
  expect(shown.json["streams"]).toEqual([
    { path: "orders/eu/1", link_type: "glob", acked_offset: streams[0]?.tail_offset },
  ]);
  expect(origin.log()).not.toContain("s3cr3t");
});

test("an acknowledged cursor, a claim and its fence are there after kill -9", async () => {
  await send("PUT", stream("wake/pool"), []);
  const definition = {
    type: "pull-wake",
    streams: ["jobs/1"],
    wake_stream: "wake/pool",
    lease_ttl_ms: 60_000,
  };
  expect((await send("PUT", subscription("pool"), definition)).status).toBe(201);
  await send("PUT", stream("jobs/1"), [{ job: 1 }]);
  await eventually("the wake's event", async () => {
    const events = await fetch(stream("wake/pool")).then((r) => r.json() as Promise<unknown[]>);
    return events.length === 1;
  });
  const claim = await send("POST", `${subscription("pool")}/claim`, { worker: "w1" });
  expect(claim.status).toBe(200);
  const [job] = claim.json["streams"] as { path: string; tail_offset: string }[];
  const { wake_id, generation, token } = claim.json;
  const own = { authorization: `Bearer ${String(token)}`, "content-type": "application/json" };
  const report = { wake_id, generation, acks: [{ stream: "jobs/1", offset: job?.tail_offset }] };
  expect((await send("POST", `${subscription("pool")}/ack`, report, own)).status).toBe(200);

  await origin.crash();
  origin = await startOrigin({ key, dataDir: origin.dataDir, port: origin.port });
  const busy = await send("POST", `${subscription("pool")}/claim`, { worker: "w2" });
  expect(busy.json["error"]).toMatchObject({ code: "ALREADY_CLAIMED", current_holder: "w1" });
  const back = {
    ...report,
    acks: [{ stream: "jobs/1", offset: "0000000000000000_0000000000000000" }],
  };
  expect(
    (await send("POST", `${subscription("pool")}/ack`, back, own)).json["error"],
  ).toMatchObject({
    code: "INVALID_OFFSET",
  });
  expect((await send("POST", `${subscription("pool")}/release`, report, own)).status).toBe(204);
  const idle = await send("POST", `${subscription("pool")}/claim`, { worker: "w2" });
  expect(idle.json["error"]).toMatchObject({ code: "NO_PENDING_WORK" });
  expect(
    (await send("POST", `${subscription("pool")}/ack`, report, own)).json["error"],
  ).toMatchObject({
    code: "FENCED",
  });
});

test("500 streams woken by kill after kill: each is told at least once, and done is never forgotten", async () => {
  receiver.received.length = 0;
  receiver.answer = { status: 200, body: '{"done":true}' };
  await send("PUT", subscription("many"), {
    type: "webhook",
    pattern: "many/*",
    webhook: { url: receiver.url },
  });
  const told = (): Set<string> =>
    new Set(
      receiver.received
        .filter(({ json }) => json.subscription_id === "many")
        .flatMap(({ json }) => json.streams.map(({ path }) => path)),
    );
  let stored = 0;
  for (let round = 0; round < 5; round++) {
    const crash = round < 4;
    const writes = Array.from({ length: 100 }, (_, i) =>
      send("PUT", `${origin.url}/v1/stream/many/${round}-${i}`, [i]).then(
        ({ status }) => {
          stored += status === 201 ? 1 : 0;
        },
        () => {},
      ),
    );
    if (crash) {
      await new Promise((resolve) => setTimeout(resolve, 50 + round * 30));
      await origin.crash();
      await Promise.all(writes);
      origin = await startOrigin({ key, dataDir: origin.dataDir, port: origin.port });
    } else {
      await Promise.all(writes);
    }
  }
  const listed = async (): Promise<string[]> => {
    const { json } = await send("GET", `${origin.url}/v1/streams?prefix=many/&limit=1000`);
    return (json["streams"] as { path: string }[]).map(({ path }) => path);
  };
  const paths = await listed();
  expect(paths.length).toBeGreaterThanOrEqual(stored);
  await eventually("every stream is told", () => paths.every((path) => told().has(path)));
  await eventually("everything is acknowledged", async () => {
    const { json } = await send("GET", `${origin.url}/v1/stream/__ds/subscriptions/many`);
    const links = json["streams"] as { acked_offset: string }[];
    return (
      links.length === paths.length && links.every(({ acked_offset }) => acked_offset !== "-1")
    );
  });
  const generations = receiver.received
    .filter(({ json }) => json.subscription_id === "many")
    .map(({ json }) => json.generation);
  expect(generations).toEqual([...generations].sort((a, b) => a - b));
  const seen = receiver.received.length;
  await origin.crash();
  origin = await startOrigin({ key, dataDir: origin.dataDir, port: origin.port });
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(receiver.received.length).toBe(seen);
});
