import { afterAll, beforeAll, expect, test } from "vitest";
import { EdgeClient } from "./edgeClient.ts";
import { startEdge, startOrigin, type EdgeProcess, type OriginProcess } from "./harness.ts";

/** The Worker before a real origin: what each acknowledgement said is what the stream holds. */
const key = "a-key-for-this-test";
let origin: OriginProcess;
let edge: EdgeProcess;
let client: EdgeClient;

beforeAll(async () => {
  origin = await startOrigin({ key });
  edge = await startEdge({ originUrl: origin.url, key });
  client = new EdgeClient(edge.url);
});
afterAll(async () => {
  client.close();
  await edge.stop();
  await origin.stop();
});

const json = { "content-type": "application/json", authorization: `Bearer ${key}` };
const read = async (stream: string): Promise<unknown> => {
  const { status, body } = await client.send(`/v1/stream/${stream}?offset=-1`, {
    method: "GET",
    headers: {},
  });
  return status === 200 ? JSON.parse(body) : status;
};

test("appends through the edge lie at the origin in order, with the origin's true offsets", async () => {
  expect((await client.send("/v1/stream/o/a", { method: "PUT", headers: json })).status).toBe(201);
  const offsets: unknown[] = [];
  for (let n = 0; n < 5; n++) {
    const { status, headers } = await client.send("/v1/stream/o/a", {
      headers: json,
      body: `{"n":${n}}`,
    });
    expect([status, headers["forebay-ack"]]).toEqual([204, "origin"]);
    offsets.push(headers["stream-next-offset"]);
  }
  expect(await read("o/a")).toEqual([0, 1, 2, 3, 4].map((n) => ({ n })));
  const direct = await fetch(`${origin.url}/v1/stream/o/a`, { method: "HEAD" });
  expect(direct.headers.get("stream-next-offset")).toBe(offsets.at(-1));
  const from = await client.send(`/v1/stream/o/a?offset=${offsets[2]}`, {
    method: "GET",
    headers: {},
  });
  expect(JSON.parse(from.body)).toEqual([{ n: 3 }, { n: 4 }]);
});

test("200 concurrent appends through the edge are stored once each, and each offset is another one", async () => {
  await client.send("/v1/stream/o/many", { method: "PUT", headers: json });
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, n) =>
      client.send("/v1/stream/o/many", { headers: json, body: String(n) }),
    ),
  );
  expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([204]));
  expect(new Set(answers.map((answer) => answer.headers["stream-next-offset"])).size).toBe(200);
  const stored = (await read("o/many")) as number[];
  expect(stored.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, n) => n));
});

test("F22 a position of ack=edge turns durable, and then the records are there, in the stream ingest made", async () => {
  const taken = await client.send(`/v1/ingest/o/events?key=${key}`, {
    headers: { "content-type": "text/plain;charset=UTF-8" },
    body: '{"e":1}\n{"e":2}\n',
  });
  expect([taken.status, taken.headers["forebay-ack"]]).toEqual([202, "edge"]);
  const position = String(taken.headers["forebay-position"]);
  const acked = await client.send(`/v1/acks/${position}?waitMs=10000`, {
    method: "GET",
    headers: json,
  });
  expect(JSON.parse(acked.body)).toEqual({ position, received: true, durable: true });
  expect(await read("o/events")).toEqual([{ e: 1 }, { e: 2 }]);
});

test("F11 a batch of several frames arrives whole and in order", async () => {
  const records = Array.from({ length: 30 }, (_, n) => ({ n, pad: "x".repeat(100_000) }));
  const taken = await client.send("/v1/ingest/o/large", {
    headers: json,
    body: JSON.stringify(records),
  });
  const position = String(taken.headers["forebay-position"]);
  expect(Number(position.split(".")[2])).toBeGreaterThan(1);
  const acked = await client.send(`/v1/acks/${position}?waitMs=10000`, {
    method: "GET",
    headers: json,
  });
  expect(JSON.parse(acked.body)).toMatchObject({ durable: true });
  const { body } = await client.send("/v1/stream/o/large?offset=-1", {
    method: "GET",
    headers: {},
  });
  expect((JSON.parse(body) as { n: number }[]).map(({ n }) => n)).toEqual(
    records.map(({ n }) => n),
  );
});

test("the edge refuses a wrong key before the origin hears of it", async () => {
  const wrong = await client.send("/v1/stream/o/a", {
    headers: { ...json, authorization: "Bearer x" },
    body: "1",
  });
  expect(wrong.status).toBe(401);
});

test("an edge with another key than its origin says so, and takes nothing as stored", async () => {
  const stranger = await startEdge({ originUrl: origin.url, key: "another" });
  try {
    const response = await fetch(`${stranger.url}/v1/stream/o/a`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: "Bearer another" },
      body: "1",
    });
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ code: "origin_unreachable" });
  } finally {
    await stranger.stop();
  }
});
