import { beforeEach, expect, test } from "vitest";
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

const codeOf = async (response: Response): Promise<[number, string]> => [
  response.status,
  ((await response.json()) as { code: string }).code,
];

test("an append becomes one request of a direct frame and gets the origin's status, fields and level", async () => {
  const response = await edge.post("/v1/stream/a/%62", "hello", {
    "content-type": "text/plain; charset=utf-8",
    "producer-id": "p",
    "producer-epoch": "2",
    "producer-seq": "3",
    "stream-seq": "s1",
  });
  expect(response.status).toBe(200);
  expect(response.headers.get("forebay-ack")).toBe("origin");
  expect(response.headers.get("stream-next-offset")).toBe("1");
  expect(response.headers.get("cache-control")).toBe("no-store");
  expect(origin.frames).toHaveLength(1);
  expect(origin.frames[0]).toEqual([
    {
      stream: "a/b",
      flags: 0,
      acceptedAt: expect.any(Number),
      contentType: "text/plain; charset=utf-8",
      producer: { id: "p", epoch: 2, seq: 3 },
      streamSeq: "s1",
      records: [new TextEncoder().encode("hello")],
    },
  ]);
});

test("a memory-backed origin's own level comes through", async () => {
  const headers = { "forebay-ack": "memory", "stream-next-offset": "1" };
  origin.onFrame = () => resultsResponse([{ status: 204, code: null, detail: null, headers }]);
  expect((await edge.post("/v1/stream/a", "x", text)).headers.get("forebay-ack")).toBe("memory");
});

test("a refusal keeps its status, code, detail and fields", async () => {
  const response = await edge.post("/v1/stream/refuse/producer_gap", "x", text);
  expect(response.status).toBe(409);
  expect(response.headers.get("content-type")).toBe("application/problem+json");
  expect(response.headers.get("stream-next-offset")).toBe("7");
  expect(await response.json()).toEqual({
    type: "urn:forebay:error:producer_gap",
    title: "The producer's sequence has a gap",
    status: 409,
    detail: "refused: producer_gap",
    code: "producer_gap",
    retryable: false,
  });
  const busy = await edge.post("/v1/stream/refuse/store_full", "x", text);
  expect([busy.status, busy.headers.get("retry-after")]).toEqual([503, "1"]);
});

test("concurrent appends share frames, and each gets its own offset", async () => {
  origin.delayMs = 5;
  const responses = await Promise.all(
    Array.from({ length: 50 }, (_, i) => edge.post("/v1/stream/many", `${i}`, text)),
  );
  const offsets = responses.map((response) => Number(response.headers.get("stream-next-offset")));
  expect(offsets).toEqual(Array.from({ length: 50 }, (_, i) => i + 1));
  expect(origin.frames.map((frame) => frame.length)).toEqual([1, 49]);
});

test("what only the origin can answer is passed to it as it is", async () => {
  origin.onOther = (request) =>
    new Response(null, { status: 204, headers: { "stream-closed": "true", via: request.url } });
  const closing = await edge.post("/v1/stream/a", "last", { ...text, "stream-closed": "true" });
  expect([closing.status, closing.headers.get("stream-closed")]).toEqual([204, "true"]);
  await edge.post("/v1/stream/a", "x", { ...text, "stream-expected-offset": "9" });
  await edge.fetch("/v1/stream/a", { method: "POST", headers: text });
  await edge.post("/v1/stream/a", new TextEncoder().encode("no type"));
  await edge.post("/v1/stream/a", "x", { "content-type": "nonsense" });
  expect(origin.frames).toEqual([]);
  expect(
    origin.forwarded
      .filter((each) => each.method === "POST")
      .map(({ url, body }) => [new URL(url).pathname, body]),
  ).toEqual([
    ["/v1/stream/a", "last"],
    ["/v1/stream/a", "x"],
    ["/v1/stream/a", ""],
    ["/v1/stream/a", "no type"],
    ["/v1/stream/a", "x"],
  ]);
});

test("bad producer fields are refused at the door", async () => {
  const half = await edge.post("/v1/stream/a", "x", { ...text, "producer-id": "p" });
  expect(await codeOf(half)).toEqual([400, "bad_producer"]);
  const bad = { ...text, "producer-id": "p", "producer-epoch": "0", "producer-seq": "1e3" };
  expect(await codeOf(await edge.post("/v1/stream/a", "x", bad))).toEqual([400, "bad_producer"]);
  expect(origin.frames).toEqual([]);
});

test("ack=none answers 202 at once and its work is done all the same, and counted apart", async () => {
  const response = await edge.post("/v1/stream/a?ack=none", "x", text);
  expect([response.status, response.headers.get("forebay-ack")]).toEqual([202, "none"]);
  expect(origin.records.get("a")).toEqual(["x"]);
  await edge.post("/v1/stream/refuse/stream_closed", "x", { ...text, "forebay-ack": "none" });
  const { edge: counters } = (await (await edge.fetch("/readyz")).json()) as {
    edge: Record<string, unknown>;
  };
  expect(counters["unacknowledged"]).toEqual({ taken: 2, landed: 1, refused: 1 });
});

test("ack=edge answers 202 with a position, and the position can be asked about", async () => {
  const response = await edge.post("/v1/stream/edge/a?ack=edge", "x", text);
  expect([response.status, response.headers.get("forebay-ack")]).toEqual([202, "edge"]);
  const position = response.headers.get("forebay-position") ?? "";
  expect(position).toMatch(/^test:[0-3]\.[0-9a-z]+\.1\.0$/);
  expect(origin.frames).toEqual([]);
  const ack = await edge.fetch(`/v1/acks/${position}`);
  expect([ack.status, await ack.json()]).toEqual([
    200,
    { position, received: false, durable: false },
  ]);
});

test("ack=edge refuses what needs the stream's own state, and bad JSON", async () => {
  for (const name of ["stream-seq", "stream-expected-offset", "stream-closed"]) {
    const response = await edge.post("/v1/stream/a?ack=edge", "x", { ...text, [name]: "true" });
    expect(await codeOf(response), name).toEqual([400, "ack_unavailable"]);
  }
  expect(await codeOf(await edge.post("/v1/stream/a?ack=edge", "[1,", json))).toEqual([
    400,
    "bad_json",
  ]);
  expect(await codeOf(await edge.post("/v1/stream/a?ack=edge", "[]", json))).toEqual([
    400,
    "empty_array",
  ]);
  expect(await codeOf(await edge.post("/v1/stream/a?ack=edge", "", text))).toEqual([
    400,
    "empty_body",
  ]);
  const untyped = await edge.post("/v1/stream/a?ack=edge", new TextEncoder().encode("x"));
  expect(await codeOf(untyped)).toEqual([400, "missing_content_type"]);
  expect(await codeOf(await edge.post("/v1/stream/a?ack=replicated", "x", text))).toEqual([
    400,
    "ack_unavailable",
  ]);
});

test("F8 with ack=edge no record and no producer's request is larger than a frame", async () => {
  const record = "x".repeat(limits.frameBytesMax);
  expect(await codeOf(await edge.post("/v1/stream/a?ack=edge", record, text))).toEqual([
    413,
    "record_too_large",
  ]);
  const producer = { "producer-id": "p", "producer-epoch": "0", "producer-seq": "0" };
  const many = JSON.stringify(Array.from({ length: 20 }, () => "x".repeat(60_000)));
  const response = await edge.post("/v1/stream/a?ack=edge", many, { ...json, ...producer });
  expect(response.status).toBe(413);
  const problem = (await response.json()) as { code: string; detail: string };
  expect(problem.code).toBe("body_too_large");
  expect(problem.detail).toContain(String(limits.frameBytesMax));
  expect((await edge.post("/v1/stream/a?ack=edge", many, json)).status).toBe(202);
});

test("I3 a body of bodyBytesMax passes, one byte more does not, chunked or declared", async () => {
  const most = new Uint8Array(limits.bodyBytesMax).fill(120);
  expect((await edge.post("/v1/stream/big", most, text)).status).toBe(204);
  expect(origin.records.get("big")?.[0]).toHaveLength(limits.bodyBytesMax);
  const more = new Uint8Array(limits.bodyBytesMax + 1);
  const declared = await edge.post("/v1/stream/big", more, {
    ...text,
    "content-length": String(more.length),
  });
  expect(await codeOf(declared)).toEqual([413, "body_too_large"]);
  const chunked = new Response(more).body?.pipeThrough(new TransformStream()) ?? null;
  const streamed = await edge.fetch("/v1/stream/big", {
    method: "POST",
    headers: text,
    body: chunked,
  });
  expect(streamed.status).toBe(413);
  expect(((await streamed.json()) as { detail: string }).detail).toContain(
    String(limits.bodyBytesMax),
  );
  expect(origin.frames).toHaveLength(1);
});

test("P12 bodies on their way count: beyond pendingBytesMax 503 edge_overloaded, and the place comes back", async () => {
  const most = limits.pendingBytesMax / limits.bodyBytesMax;
  const open = Array.from({ length: most }, () => {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const answer = edge.fetch("/v1/stream/slow", { method: "POST", headers: text, body: readable });
    return { writer: writable.getWriter(), answer };
  });
  for (const { writer } of open) {
    await writer.write(new Uint8Array(limits.bodyBytesMax - 4096));
  }
  const rest = new Uint8Array(most * 4096 + 1);
  const refused = await edge.post("/v1/stream/slow", rest, text);
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(await codeOf(refused)).toEqual([503, "edge_overloaded"]);
  for (const { writer } of open) {
    await writer.close();
  }
  const statuses = await Promise.all(open.map(async ({ answer }) => (await answer).status));
  expect(statuses).toEqual(Array(most).fill(204));
  expect((await edge.post("/v1/stream/slow", rest, text)).status).toBe(204);
});

test("I3 Content-Length that is no number, or another one, is refused", async () => {
  for (const length of ["NaN", "-1", "1e3", "0x5", "5"]) {
    const response = await edge.post("/v1/stream/a", "four", { ...text, "content-length": length });
    expect(await codeOf(response), length).toEqual([400, "bad_header"]);
  }
});

test("I3 URL and header fields have a limit", async () => {
  const url = await edge.fetch(`/v1/stream/a?x=${"y".repeat(limits.urlBytesMax)}`);
  expect(await codeOf(url)).toEqual([414, "url_too_long"]);
  const fields = await edge.fetch("/v1/stream/a", {
    headers: { "x-long": "y".repeat(limits.headerBytesMax) },
  });
  expect(await codeOf(fields)).toEqual([431, "headers_too_large"]);
});

test("encoded bodies, reserved paths and bad queries are refused", async () => {
  const gzip = await edge.post("/v1/stream/a", "x", { ...text, "content-encoding": "gzip" });
  expect(await codeOf(gzip)).toEqual([415, "unsupported_media_type"]);
  const reserved = await edge.post("/v1/stream/_forebay/quarantine", "x", text);
  expect(await codeOf(reserved)).toEqual([403, "reserved_path"]);
  expect(await codeOf(await edge.post("/v1/stream/a?ack=edge&ack=none", "x", text))).toEqual([
    400,
    "bad_query",
  ]);
});

test("P14 the path is normalised once: one spelling at the origin, bad ones refused before anything else", async () => {
  const locked = new EdgeUnderTest({ FOREBAY_KEY: "k" });
  for (const path of ["a//b", "a/", "a%00b", "a%zz", "a%2F%2Fb", "", "%5C", "a%2f%2e%2e"]) {
    const response = await locked.fetch(`/v1/stream/${path}`, { method: "POST", body: "x" });
    expect(await codeOf(response), path).toEqual([400, "bad_path"]);
  }
  for (const path of ["a/%7Eb", "a%2F~b", "a/~b"]) {
    expect((await edge.post(`/v1/stream/${path}`, "x", text)).status).toBe(204);
  }
  expect([...origin.records.keys()]).toEqual(["a/~b"]);
});
