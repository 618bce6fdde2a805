import { afterAll, beforeAll, expect, test } from "vitest";
import { startGateway, type GatewayUnderTest } from "./gatewayUnderTest.ts";
import "./eventually.ts";

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.close());

function ingest(path: string, type: string | null, body: string): Promise<Response> {
  const headers: Record<string, string> = type === null ? {} : { "content-type": type };
  return fetch(`${gateway.url}/v1/ingest/${path}`, {
    method: "POST",
    headers,
    body: new TextEncoder().encode(body),
  });
}

const stored = async (path: string): Promise<unknown> =>
  (await fetch(`${gateway.url}/v1/stream/${path}`)).json();

test("I2 an array creates its stream and says what became of it", async () => {
  const answer = await ingest("array", "application/json", '[{"a":1},2]');
  expect([answer.status, answer.headers.get("forebay-ack")]).toEqual([200, "origin"]);
  expect(await answer.json()).toEqual({
    received: 2,
    accepted: 2,
    refused: [],
    deduplicated: 0,
    ack: "origin",
    nextOffset: "0000000000000002_0000000000000008",
  });
  expect(answer.headers.get("stream-next-offset")).toBe("0000000000000002_0000000000000008");
  expect(await stored("array")).toEqual([{ a: 1 }, 2]);
});

test("I2 bad lines are refused by themselves, 400 only when nothing was accepted", async () => {
  const some = await ingest("lines", "application/x-ndjson", '1\n{bad\n\n"x"\n');
  expect(some.status).toBe(200);
  expect(await some.json()).toMatchObject({
    received: 3,
    accepted: 2,
    refused: [{ index: 1, code: "bad_json" }],
  });
  expect(await stored("lines")).toEqual([1, "x"]);
  const none = await ingest("none", "application/x-ndjson", "{bad\n{worse\n");
  expect(none.status).toBe(400);
  expect(await none.json()).toMatchObject({
    received: 2,
    accepted: 0,
    refused: [{ index: 0 }, { index: 1 }],
  });
  expect((await fetch(`${gateway.url}/v1/stream/none`)).status).toBe(404);
});

test("a beacon: text/plain, producer and level in the URL, deduplicated", async () => {
  const beacon = (): Promise<Response> =>
    ingest("beacon?producerId=b&epoch=0&seq=0", "text/plain;charset=UTF-8", '[{"e":1},{"e":2}]');
  expect(await (await beacon()).json()).toMatchObject({ accepted: 2, deduplicated: 0 });
  const again = await beacon();
  expect(again.status).toBe(200);
  expect(await again.json()).toMatchObject({
    received: 2,
    accepted: 0,
    refused: [],
    deduplicated: 2,
    ack: "origin",
  });
  expect(await stored("beacon")).toEqual([{ e: 1 }, { e: 2 }]);
});

test("a body without a content type is sniffed", async () => {
  expect(await (await ingest("sniffed", null, '{"a":1}\n{"a":2}\n')).json()).toMatchObject({
    accepted: 2,
  });
});

test("ack=none is answered 202 and stored all the same; ack=edge with the stronger level", async () => {
  const none = await ingest("levels?ack=none", "application/json", "[1]");
  expect([none.status, none.headers.get("forebay-ack")]).toEqual([202, "none"]);
  expect(await none.json()).toMatchObject({ received: 1, accepted: 1, ack: "none" });
  const edge = await ingest("levels?ack=edge", "application/json", "[2]");
  expect([edge.status, ((await edge.json()) as { ack: string }).ack]).toEqual([200, "origin"]);
  expect(await stored("levels")).toEqual([1, 2]);
});

test("what the streams refuse is refused as a whole, with its code", async () => {
  await fetch(`${gateway.url}/v1/stream/textual`, {
    method: "PUT",
    headers: { "content-type": "text/plain" },
  });
  const mismatch = await ingest("textual", "application/json", "[1]");
  expect([mismatch.status, ((await mismatch.json()) as { code: string }).code]).toEqual([
    409,
    "content_type_mismatch",
  ]);
  const gap = await ingest("gap?producerId=g&epoch=0&seq=5", "application/json", "[1]");
  expect([gap.status, ((await gap.json()) as { code: string }).code]).toEqual([
    409,
    "producer_gap",
  ]);
});

test("promise 5: the counts add up", async () => {
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  const count = (name: string): number =>
    Number(new RegExp(`^forebay_${name}_total (\\d+)`, "m").exec(metrics)?.[1]);
  expect(count("records_received")).toBe(17);
  expect([
    count("records_refused"),
    count("records_deduplicated"),
    count("records_stored"),
  ]).toEqual([5, 2, 10]);
});
