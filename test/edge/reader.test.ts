import { beforeEach, expect, test } from "vitest";
import { EdgeUnderTest, text } from "./edgeUnderTest.ts";
import { StandInOrigin } from "./standInOrigin.ts";

let origin: StandInOrigin;
let edge: EdgeUnderTest;
beforeEach(() => {
  origin = new StandInOrigin();
  origin.install();
  edge = new EdgeUnderTest({ FOREBAY_KEY: "k" });
});

const auth = { authorization: "Bearer k" };
const codeOf = async (response: Response): Promise<[number, string]> => [
  response.status,
  ((await response.json()) as { code: string }).code,
];

test("a read passes with its query and validators, the client's secrets stay here, and no key goes along", async () => {
  origin.onOther = () =>
    new Response("data", {
      headers: {
        etag: '"s:1:2"',
        "stream-next-offset": "5",
        "cache-control": "public, max-age=60",
        "x-own": "y",
      },
    });
  const response = await edge.fetch("/v1/stream/r/%61?offset=-1&key=guess&live=long-poll", {
    headers: {
      authorization: "Bearer guess",
      cookie: "c=1",
      "if-none-match": '"s:1:1"',
      connection: "close, x-hop",
      "x-hop": "1",
      te: "trailers",
      "cf-connecting-ip": "1.2.3.4",
    },
  });
  expect([response.status, await response.text()]).toEqual([200, "data"]);
  expect(response.headers.get("etag")).toBe('"s:1:2"');
  expect(response.headers.get("stream-next-offset")).toBe("5");
  expect(response.headers.get("cache-control")).toBe("public, max-age=60");
  const [seen] = origin.forwarded;
  expect(seen?.url).toBe("http://127.0.0.1:4437/v1/stream/r/a?offset=-1&live=long-poll");
  const fields = Object.fromEntries(seen?.headers ?? []);
  expect(fields["authorization"]).toBeUndefined();
  expect(fields["if-none-match"]).toBe('"s:1:1"');
  for (const name of ["cookie", "x-hop", "te", "connection", "cf-connecting-ip"]) {
    expect(fields[name], name).toBeUndefined();
  }
});

test("a read with the key goes with the edge's own, so that its answer is private", async () => {
  for (const [path, headers] of [
    ["/v1/stream/r", auth],
    ["/v1/stream/r?key=k", {}],
  ] as const) {
    await edge.fetch(path, { headers });
    const [seen] = origin.forwarded.splice(0);
    expect([seen?.url, seen?.headers.get("authorization")]).toEqual([
      "http://127.0.0.1:4437/v1/stream/r",
      "Bearer k",
    ]);
  }
});

test("P5 the fields of a fork pass unchanged", async () => {
  const fork = {
    "stream-forked-from": "/v1/stream/a%2fb",
    "stream-fork-offset": "0000000000000001_0000000000000002",
    "stream-fork-sub-offset": "3",
  };
  await edge.fetch("/v1/stream/f", { method: "PUT", headers: { ...auth, ...fork } });
  const seen = origin.forwarded.at(-1);
  expect(Object.fromEntries(seen?.headers ?? [])).toMatchObject(fork);
  expect(seen?.headers.get("content-type")).toBeNull();
});

test("304 and its ETag, and HEAD's fields, pass without a body", async () => {
  origin.onOther = () => new Response(null, { status: 304, headers: { etag: 'W/"a"' } });
  const unchanged = await edge.fetch("/v1/stream/r", { headers: { "if-none-match": 'W/"a"' } });
  expect([unchanged.status, unchanged.headers.get("etag"), await unchanged.text()]).toEqual([
    304,
    'W/"a"',
    "",
  ]);
  origin.onOther = () => new Response(null, { headers: { "stream-next-offset": "9" } });
  const head = await edge.fetch("/v1/stream/r", { method: "HEAD" });
  expect([head.status, head.headers.get("stream-next-offset")]).toEqual([200, "9"]);
  expect(origin.forwarded.at(-1)?.method).toBe("HEAD");
});

test("creation needs the key, and its Location is on this edge", async () => {
  origin.onOther = (request) =>
    new Response(null, { status: 201, headers: { location: request.url } });
  expect(await codeOf(await edge.fetch("/v1/stream/r", { method: "PUT" }))).toEqual([
    401,
    "unauthorized",
  ]);
  expect(origin.forwarded).toEqual([]);
  const created = await edge.fetch("/v1/stream/r", {
    method: "PUT",
    body: "first",
    headers: { ...auth, ...text },
  });
  expect([created.status, created.headers.get("location")]).toEqual([
    201,
    "http://edge.test/v1/stream/r",
  ]);
  expect(origin.forwarded.at(-1)).toMatchObject({ method: "PUT", body: "first" });
  origin.onOther = () => new Response(null, { status: 201, headers: { location: "/v1/stream/r" } });
  const relative = await edge.fetch("/v1/stream/r", { method: "PUT", headers: auth });
  expect(relative.headers.get("location")).toBe("/v1/stream/r");
});

test("creation and deletion need the origin's own acknowledgement", async () => {
  for (const ack of ["edge", "none"]) {
    for (const method of ["PUT", "DELETE"]) {
      const response = await edge.fetch(`/v1/stream/r?ack=${ack}`, { method, headers: auth });
      expect(await codeOf(response)).toEqual([400, "ack_unavailable"]);
    }
  }
  expect(origin.forwarded).toEqual([]);
  const stated = await edge.fetch("/v1/stream/r?ack=origin", { method: "DELETE", headers: auth });
  expect(stated.status).toBe(200);
});

test("the origin's own refusals pass unchanged", async () => {
  origin.onOther = () =>
    new Response("{}", { status: 410, headers: { "stream-next-offset": "3", "retry-after": "9" } });
  const gone = await edge.fetch("/v1/stream/r?offset=x");
  expect([
    gone.status,
    gone.headers.get("stream-next-offset"),
    gone.headers.get("retry-after"),
  ]).toEqual([410, "3", "9"]);
});

test("the origin down: reads and writes alike are 503 origin_unreachable with Retry-After", async () => {
  origin.onOther = null;
  for (const init of [{}, { method: "DELETE", headers: auth }, { method: "PUT", headers: auth }]) {
    const response = await edge.fetch("/v1/stream/r", init);
    expect(response.headers.get("retry-after")).toBe("1");
    expect(await codeOf(response)).toEqual([503, "origin_unreachable"]);
  }
});

test("a change whose reply is lost is outcome_unknown", async () => {
  origin.onOther = (request) => {
    if (request.method === "DELETE") {
      throw new Error("Network connection lost.");
    }
    return new Response("ok");
  };
  const response = await edge.fetch("/v1/stream/r", { method: "DELETE", headers: auth });
  expect(await codeOf(response)).toEqual([503, "outcome_unknown"]);
});

test("the list of streams passes, the metrics of the origin do not", async () => {
  origin.onOther = () => Response.json({ streams: [], next: null });
  expect(await (await edge.fetch("/v1/streams?limit=1")).json()).toEqual({
    streams: [],
    next: null,
  });
  expect(await codeOf(await edge.fetch("/metrics"))).toEqual([404, "not_found"]);
  expect(await codeOf(await edge.fetch("/v1/frames", { method: "POST" }))).toEqual([
    404,
    "not_found",
  ]);
});
