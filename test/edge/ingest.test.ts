import { beforeEach, expect, test } from "vitest";
import { requestFlag } from "../../shared/frame/mod.ts";
import type { IngestAnswer } from "../../shared/ingest/mod.ts";
import { limits } from "../../shared/limits.ts";
import { EdgeUnderTest, json, text } from "./edgeUnderTest.ts";
import { resultsResponse, StandInOrigin } from "./standInOrigin.ts";

let origin: StandInOrigin;
let edge: EdgeUnderTest;
beforeEach(() => {
  origin = new StandInOrigin();
  origin.install();
  edge = new EdgeUnderTest();
});

const ndjson = { "content-type": "application/x-ndjson" };
const answerOf = async (response: Response): Promise<IngestAnswer> => await response.json();
const codeOf = async (response: Response): Promise<[number, string]> => [
  response.status,
  ((await response.json()) as { code: string }).code,
];

test("I2 a JSON array goes to the outbox: 202, counts and position", async () => {
  const response = await edge.post("/v1/ingest/i/a", '[{"a":1}, {"a":2}]', json);
  expect([response.status, response.headers.get("forebay-ack")]).toEqual([202, "edge"]);
  const position = response.headers.get("forebay-position");
  expect(await answerOf(response)).toEqual({
    received: 2,
    accepted: 2,
    refused: [],
    deduplicated: 0,
    ack: "edge",
    position,
  });
  expect(position).toMatch(/^test:\d\.[0-9a-z]+\.\d+\.0$/);
});

test("I2 each bad line is named, the good ones are taken; 400 only when none was", async () => {
  const some = await edge.post("/v1/ingest/i/b", '{"a":1}\n{"a":\n\n3\n', ndjson);
  expect(some.status).toBe(202);
  expect(await answerOf(some)).toMatchObject({
    received: 3,
    accepted: 2,
    refused: [{ index: 1, code: "bad_json" }],
  });
  const none = await edge.post("/v1/ingest/i/b", "{\n[\n", ndjson);
  expect(none.status).toBe(400);
  expect(none.headers.get("forebay-position")).toBeNull();
  expect(await answerOf(none)).toMatchObject({ received: 2, accepted: 0 });
});

test("a beacon is text, and brings key, producer and level in the query", async () => {
  const locked = new EdgeUnderTest({ FOREBAY_KEY: "secret" });
  const path = "/v1/ingest/i/c?key=secret&producerId=page-1&epoch=0&seq=0&ack=origin";
  const response = await locked.post(path, '[{"e":"unload"},{"e":"x"}]', {
    "content-type": "text/plain;charset=UTF-8",
  });
  expect(response.status).toBe(200);
  expect(origin.frames).toEqual([
    [
      {
        stream: "i/c",
        flags: requestFlag.create | requestFlag.json,
        acceptedAt: expect.any(Number),
        contentType: "application/json",
        producer: { id: "page-1", epoch: 0, seq: 0 },
        streamSeq: null,
        records: ['{"e":"unload"}', '{"e":"x"}'].map((record) => new TextEncoder().encode(record)),
      },
    ],
  ]);
  const wrong = await locked.post(path.replace("secret", "guess"), "[1]", text);
  expect(await codeOf(wrong)).toEqual([401, "unauthorized"]);
});

test("ack=origin: 200 with the tail; a producer's repetition is told as such; a refusal is a problem", async () => {
  const first = await edge.post("/v1/ingest/i/d?ack=origin", "[1,2,3]", json);
  expect([
    first.status,
    first.headers.get("forebay-ack"),
    first.headers.get("stream-next-offset"),
  ]).toEqual([200, "origin", "3"]);
  expect(await answerOf(first)).toEqual({
    received: 3,
    accepted: 3,
    refused: [],
    deduplicated: 0,
    ack: "origin",
    nextOffset: "3",
  });
  origin.onFrame = () => resultsResponse([{ status: 204, code: null, detail: null, headers: {} }]);
  const again = await edge.post(
    "/v1/ingest/i/d?ack=origin&producerId=p&epoch=0&seq=0",
    "[1,2,3]",
    json,
  );
  expect(await answerOf(again)).toMatchObject({ received: 3, accepted: 0, deduplicated: 3 });
  origin.onFrame = null;
  const refused = await edge.post("/v1/ingest/refuse/stream_closed?ack=origin", "[1]", json);
  expect(await codeOf(refused)).toEqual([409, "stream_closed"]);
});

test("ack=none answers 202 without a position", async () => {
  const response = await edge.post("/v1/ingest/i/e?ack=none", "[1]", json);
  expect([response.status, response.headers.get("forebay-ack")]).toEqual([202, "none"]);
  expect(await answerOf(response)).toEqual({
    received: 1,
    accepted: 1,
    refused: [],
    deduplicated: 0,
    ack: "none",
  });
});

test("F11 the same batch id gets the same position and says that it was there", async () => {
  const batch = { ...json, "forebay-batch-id": "b-1" };
  const first = await edge.post("/v1/ingest/i/f", "[1,2]", batch);
  const position = first.headers.get("forebay-position");
  const again = await edge.post("/v1/ingest/i/f?batch=b-1", "[1,2]", json);
  expect(again.status).toBe(202);
  expect(await answerOf(again)).toMatchObject({
    received: 2,
    accepted: 0,
    deduplicated: 2,
    position,
  });
});

test("a batch id is refused where nobody would remember it, and when it is malformed", async () => {
  const origin1 = await edge.post("/v1/ingest/i/g?ack=origin&batch=b", "[1]", json);
  expect(await codeOf(origin1)).toEqual([400, "ack_unavailable"]);
  const bad = await edge.post("/v1/ingest/i/g?batch=a%20b", "[1]", json);
  expect(await codeOf(bad)).toEqual([400, "bad_header"]);
});

test("a producer gap at the outbox is the protocol's 409", async () => {
  const path = (seq: number): string => `/v1/ingest/i/h?producerId=p&epoch=0&seq=${seq}`;
  expect((await edge.post(path(0), "[1]", json)).status).toBe(202);
  const gap = await edge.post(path(2), "[1]", json);
  expect(await codeOf(gap)).toEqual([409, "producer_gap"]);
  expect((await edge.post(path(1), "[1]", json)).status).toBe(202);
});

test("F11 a batch larger than a frame is taken whole, in several frames, and answered once", async () => {
  const records = JSON.stringify(
    Array.from({ length: 40 }, (_, i) => `${i}:${"x".repeat(100_000)}`),
  );
  const response = await edge.post("/v1/ingest/i/large", records, json);
  expect(response.status).toBe(202);
  const answer = await answerOf(response);
  expect(answer).toMatchObject({ received: 40, accepted: 40, refused: [] });
  const fsn = Number(answer.position?.split(".")[2]);
  expect(fsn).toBeGreaterThanOrEqual(4);
});

test("F8 a record that no frame can hold is refused by itself, with the limit", async () => {
  const response = await edge.post(
    "/v1/ingest/i/j",
    JSON.stringify(["x".repeat(limits.recordBytesMax - 2), 1]),
    json,
  );
  expect(response.status).toBe(202);
  const answer = await answerOf(response);
  expect(answer).toMatchObject({
    received: 2,
    accepted: 1,
    refused: [{ index: 0, code: "record_too_large" }],
  });
  const limit = Number(/limit with ack=edge is (\d+)/.exec(answer.refused[0]?.message ?? "")?.[1]);
  const exact = await edge.post("/v1/ingest/i/j", JSON.stringify(["x".repeat(limit - 2)]), json);
  expect(await answerOf(exact)).toMatchObject({ accepted: 1 });
  const over = await edge.post("/v1/ingest/i/j", JSON.stringify(["x".repeat(limit - 1)]), json);
  expect([over.status, (await answerOf(over)).accepted]).toEqual([400, 0]);
});

test("I8 hostile bodies get a 4xx with a code", async () => {
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  const cases: [BodyInit, Record<string, string>, number, string][] = [
    [deep, json, 400, "json_too_deep"],
    ["[1,2", json, 400, "bad_json"],
    ["", json, 400, "empty_body"],
    ["[]", json, 400, "empty_array"],
    [new Uint8Array([0x22, 0xff, 0x22]), json, 400, "bad_utf8"],
    [`[${"1,".repeat(limits.requestRecordsMax)}1]`, json, 413, "too_many_records"],
    ["a,b", { "content-type": "text/csv" }, 415, "unsupported_media_type"],
    ["x", { ...json, "content-encoding": "br" }, 415, "unsupported_media_type"],
  ];
  for (const [body, headers, status, code] of cases) {
    expect(await codeOf(await edge.post("/v1/ingest/i/k", body, headers)), code).toEqual([
      status,
      code,
    ]);
  }
  const proto = await edge.post("/v1/ingest/i/k?ack=origin", '[{"__proto__":{"x":1}},1e999]', json);
  expect(proto.status).toBe(200);
  expect(origin.records.get("i/k")).toEqual(['{"__proto__":{"x":1}}', "1e999"]);
});

test("I2 the most records pass, and a method that is not allowed is named", async () => {
  const most = `[${Array(limits.requestRecordsMax).fill("1").join(",")}]`;
  const response = await edge.post("/v1/ingest/i/m", most, json);
  expect(await answerOf(response)).toMatchObject({
    received: limits.requestRecordsMax,
    accepted: limits.requestRecordsMax,
  });
  const wrong = await edge.fetch("/v1/ingest/i/m");
  expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "POST, OPTIONS"]);
});
