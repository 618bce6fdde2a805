import { env } from "cloudflare:workers";
import { listDurableObjectIds } from "cloudflare:test";
import { beforeEach, expect, test } from "vitest";
import { EdgeUnderTest, json, text } from "./edgeUnderTest.ts";
import { StandInOrigin } from "./standInOrigin.ts";

const origin = new StandInOrigin();
beforeEach(() => origin.install());

const codeOf = async (response: Response): Promise<[number, string]> => [
  response.status,
  ((await response.json()) as { code: string }).code,
];

test("without the key nothing is written, and no outbox is touched", async () => {
  const edge = new EdgeUnderTest({ FOREBAY_KEY: "right" });
  const calls: [string, RequestInit][] = [
    ["/v1/stream/a", { method: "POST", body: "x", headers: text }],
    [
      "/v1/stream/a?ack=edge",
      { method: "POST", body: "x", headers: { ...text, authorization: "Bearer wrong" } },
    ],
    ["/v1/stream/a?key=right", { method: "DELETE", headers: { authorization: "Basic right" } }],
    ["/v1/ingest/a", { method: "POST", body: "[1]", headers: json }],
    ["/v1/acks/test:0.abc.1.0", {}],
    ["/v1/outboxes/0", {}],
  ];
  for (const [path, init] of calls) {
    const response = await edge.fetch(path, init);
    expect(response.headers.get("www-authenticate"), path).toBe("Bearer");
    expect(await codeOf(response), path).toEqual([401, "unauthorized"]);
  }
  expect(await listDurableObjectIds(env.OUTBOX)).toEqual([]);
  const keyed = await edge.post("/v1/ingest/a", "[1]", { ...json, authorization: "Bearer right" });
  expect(keyed.status).toBe(202);
  expect(await listDurableObjectIds(env.OUTBOX)).toHaveLength(1);
});

test("without a key the edge serves an origin on its own machine only", async () => {
  for (const url of ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"]) {
    expect(
      (await new EdgeUnderTest({ ORIGIN_URL: url }).post("/v1/stream/a", "x", text)).status,
    ).toBe(204);
  }
  for (const url of [
    "http://origin.example",
    "http://127.0.0.1.evil.example",
    "https://localhost.example",
  ]) {
    const response = await new EdgeUnderTest({ ORIGIN_URL: url }).post("/v1/stream/a", "x", text);
    expect(await codeOf(response), url).toEqual([500, "key_required"]);
  }
});

test("a broken configuration is told with the offending value, on every route that needs it", async () => {
  const broken: [Record<string, string>, string][] = [
    [{ ORIGIN_URL: "nonsense" }, "nonsense"],
    [{ ORIGIN_URL: "ftp://127.0.0.1" }, "ftp://127.0.0.1"],
    [{ OUTBOX_PARTITIONS: "6" }, "6"],
    [{ REGION: "eu west" }, "eu west"],
    [{ FOREBAY_ORIGINS: "example.com" }, "example.com"],
  ];
  for (const [bindings, value] of broken) {
    const response = await new EdgeUnderTest(bindings).fetch("/v1/stream/a");
    expect(response.status).toBe(500);
    const problem = (await response.json()) as { code: string; detail: string };
    expect(problem.code).toBe("config_invalid");
    expect(problem.detail).toContain(value);
  }
});

test("I5 P13 an allowed page gets its exact origin, others none; writes from others are refused", async () => {
  const edge = new EdgeUnderTest({ FOREBAY_ORIGINS: "https://app.example" });
  const app = { origin: "https://app.example" };
  const evil = { origin: "https://evil.example" };
  const written = await edge.post("/v1/stream/a", "x", { ...text, ...app });
  expect(written.status).toBe(204);
  expect(written.headers.get("access-control-allow-origin")).toBe("https://app.example");
  expect(written.headers.get("access-control-expose-headers")).toContain("stream-next-offset");
  expect(written.headers.get("vary")).toBe("Origin");
  const refused = await edge.post("/v1/stream/a", "x", { ...text, ...evil });
  expect(refused.headers.get("access-control-allow-origin")).toBeNull();
  expect(await codeOf(refused)).toEqual([403, "origin_not_allowed"]);
  const read = await edge.fetch("/v1/stream/a", { headers: evil });
  expect([read.status, read.headers.get("access-control-allow-origin")]).toEqual([200, null]);
  const local = await new EdgeUnderTest().post("/v1/stream/a", "x", {
    ...text,
    origin: "http://localhost:5173",
  });
  expect(local.headers.get("access-control-allow-origin")).toBe("http://localhost:5173");
});

test("I5 a preflight is answered here, cached 7200 s, and lists what clients send", async () => {
  const edge = new EdgeUnderTest({ FOREBAY_ORIGINS: "https://app.example", FOREBAY_KEY: "k" });
  const forwardedBefore = origin.forwarded.length;
  for (const path of ["/v1/stream/a", "/v1/ingest/a", "/v1/acks/x"]) {
    const response = await edge.fetch(path, {
      method: "OPTIONS",
      headers: { origin: "https://app.example", "access-control-request-method": "POST" },
    });
    expect([response.status, response.headers.get("access-control-max-age")]).toEqual([
      204,
      "7200",
    ]);
    expect(response.headers.get("access-control-allow-origin")).toBe("https://app.example");
    expect(response.headers.get("access-control-allow-headers")).toContain("if-none-match");
    expect(response.headers.get("access-control-allow-credentials")).toBeNull();
  }
  expect(origin.forwarded.length).toBe(forwardedBefore);
});

test("P13 nosniff and CORP stand on every answer, and an origin's own CORS fields do not pass", async () => {
  origin.onOther = () =>
    new Response("x", {
      headers: {
        "access-control-allow-origin": "*",
        vary: "Accept-Encoding",
        "x-content-type-options": "y",
      },
    });
  const edge = new EdgeUnderTest();
  const answers = [
    await edge.fetch("/v1/stream/a"),
    await edge.post("/v1/stream/a", "x", text),
    await edge.fetch("/nowhere"),
    await edge.fetch("/livez"),
    await edge.post("/v1/ingest/a", "{", json),
    await edge.fetch("/v1/stream/a", { method: "OPTIONS" }),
    await new EdgeUnderTest({ REGION: "" }).fetch("/v1/stream/a"),
  ];
  for (const { headers } of answers) {
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("cross-origin-resource-policy")).toBe("cross-origin");
    expect(headers.get("access-control-allow-origin")).toBeNull();
    expect(headers.get("vary")).toContain("Origin");
  }
  expect(answers[0]?.headers.get("vary")).toBe("Accept-Encoding, Origin");
});

test("health: live always, ready as the origin says, unready without it", async () => {
  const edge = new EdgeUnderTest();
  expect(await (await edge.fetch("/livez")).json()).toEqual({ status: "ok" });
  origin.onOther = () => Response.json({ status: "ready", ack: "origin" });
  const ready = await edge.fetch("/readyz");
  expect([ready.status, await ready.json()]).toEqual([
    200,
    {
      status: "ready",
      origin: { status: "ready", ack: "origin" },
      edge: {
        pendingBytes: 0,
        lanes: { origin: expect.objectContaining({ requests: 0, flights: 0 }) },
        unacknowledged: { taken: 0, landed: 0, refused: 0 },
      },
    },
  ]);
  origin.onOther = () => Response.json({ status: "failed" }, { status: 503 });
  expect((await edge.fetch("/readyz")).status).toBe(503);
  origin.onOther = null;
  expect(await codeOf(await edge.fetch("/readyz"))).toEqual([503, "origin_unreachable"]);
  expect((await edge.fetch("/livez")).status).toBe(200);
});

test("F22 positions and outboxes of another edge, and bad waits, are refused by name", async () => {
  const edge = new EdgeUnderTest();
  for (const path of [
    "/v1/acks/",
    "/v1/acks/x",
    "/v1/acks/other:0.abc.1.0",
    "/v1/acks/test:4.abc.1.0",
    "/v1/outboxes/4",
    "/v1/outboxes/-1",
  ]) {
    expect(await codeOf(await edge.fetch(path)), path).toEqual([404, "not_found"]);
  }
  for (const wait of ["-1", "30001", "1.5", "x"]) {
    expect(await codeOf(await edge.fetch(`/v1/acks/test:0.abc.1.0?waitMs=${wait}`)), wait).toEqual([
      400,
      "bad_query",
    ]);
  }
  expect(await codeOf(await edge.fetch("/v1/acks/test:0.unknown.1.0"))).toEqual([404, "not_found"]);
});

test("an outbox's status names its buffer and adds up", async () => {
  const edge = new EdgeUnderTest({ OUTBOX_PARTITIONS: "1", REGION: "ledger" });
  for (let i = 0; i < 3; i++) {
    await edge.post("/v1/ingest/l", "[1,2]", json);
  }
  const status = (await (await edge.fetch("/v1/outboxes/0")).json()) as {
    buffer: string;
    highestFsn: number;
    ledger: Record<string, number>;
  };
  expect([status.buffer, status.highestFsn]).toEqual(["ledger:0", 3]);
  expect(status.ledger).toMatchObject({ accepted: 6, refused: 0, dead: 0 });
});
