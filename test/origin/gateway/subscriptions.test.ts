import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { JSONWebKeySet } from "jose";
import { limits } from "../../../shared/limits.ts";
import { isSigned, type Receiver, startReceiver } from "../../webhookReceiver.ts";
import { eventually } from "./eventually.ts";
import { startGateway, type GatewayUnderTest } from "./gatewayUnderTest.ts";
import { rawRequest } from "./rawHttp.ts";

const root = "/v1/stream/__ds/subscriptions";
let gateway: GatewayUnderTest;
let receiver: Receiver;
beforeAll(async () => {
  gateway = await startGateway();
  receiver = await startReceiver();
});
afterAll(async () => {
  receiver.close();
  await gateway.close();
});

async function send(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
  url = gateway.url,
): Promise<{ status: number; json: Record<string, unknown>; headers: Headers }> {
  const response = await fetch(url + path, {
    method,
    headers,
    body: body === undefined || typeof body === "string" ? (body ?? null) : JSON.stringify(body),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    json: text === "" ? {} : (JSON.parse(text) as Record<string, unknown>),
  };
}

const hook = (): Record<string, unknown> => ({
  type: "webhook",
  pattern: "events/*",
  webhook: { url: receiver.url },
  lease_ttl_ms: 1000,
});
const pull = { type: "pull-wake", pattern: "jobs/*", wake_stream: "wake", lease_ttl_ms: 1000 };

test("a webhook is signed by a key of the JWKS, and a callback moves the cursor", async () => {
  const created = await send("PUT", `${root}/life`, hook());
  expect([created.status, created.json["created_at"]]).toEqual([201, expect.any(String)]);
  expect(created.json).toMatchObject({
    id: "life",
    type: "webhook",
    pattern: "events/*",
    status: "active",
    lease_ttl_ms: 1000,
    webhook: {
      url: receiver.url,
      signing: { alg: "ed25519", jwks_url: `${gateway.url}/v1/stream/__ds/jwks.json` },
    },
  });
  const keys = await fetch(`${gateway.url}/v1/stream/__ds/jwks.json`);
  expect([keys.headers.get("content-type"), keys.headers.get("cache-control")]).toEqual([
    "application/jwk-set+json",
    "public, max-age=300",
  ]);
  const jwks = (await keys.json()) as JSONWebKeySet;
  expect(jwks.keys.map((key) => "d" in key)).toEqual([false]);
  await send("PUT", "/v1/stream/events/a", '{"n":1}', { "content-type": "application/json" });
  await eventually(() => receiver.received.length).toBe(1);
  const [webhook] = receiver.received;
  if (webhook === undefined) {
    throw new Error("nothing came");
  }
  expect(await isSigned(webhook, jwks)).toBe(true);
  expect(await isSigned({ ...webhook, body: `${webhook.body} ` }, jwks)).toBe(false);
  const { callback_url, callback_token, wake_id, generation, streams } = webhook.json;
  expect(callback_url).toBe(`${gateway.url}${root}/life/callback`);
  const acks = streams.map(({ path, tail_offset }) => ({ stream: path, offset: tail_offset }));
  const report = { wake_id, generation, acks, done: true };
  const token = { authorization: `Bearer ${callback_token}` };
  const done = await send("POST", `${root}/life/callback`, report, token);
  expect([done.status, done.json]).toEqual([200, { ok: true, next_wake: false }]);
  const late = await send("POST", `${root}/life/callback`, report, token);
  expect([late.status, late.json["code"], late.json["error"]]).toEqual([
    409,
    "fenced",
    { code: "FENCED", message: expect.any(String), generation: 1 },
  ]);
  const { json } = await send("GET", `${root}/life`);
  expect(json["streams"]).toEqual([
    { path: "events/a", link_type: "glob", acked_offset: streams[0]?.tail_offset },
  ]);
  expect((await send("DELETE", `${root}/life`)).status).toBe(204);
});

test("P17 no answer about a subscription leaves before it is durable", async () => {
  gateway.journal.held = true;
  let answered = 0;
  const asked = ["PUT", "GET", "DELETE"].map(async (method) => {
    const answer = await send(method, `${root}/held`, method === "PUT" ? pull : undefined);
    answered += 1;
    return answer.status;
  });
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(answered).toBe(0);
  gateway.journal.held = false;
  gateway.journal.commit();
  const [made, , ended] = await Promise.all(asked);
  expect([made, ended]).toEqual([201, 204]);
});

test("a journal that is full is 507 with the protocol's error object, and nothing is changed", async () => {
  gateway.journal.refusal = "disk_full";
  const refused = await send("PUT", `${root}/full`, pull);
  gateway.journal.refusal = null;
  expect([refused.status, refused.json["code"], refused.json["error"]]).toEqual([
    507,
    "disk_full",
    { code: "DISK_FULL", message: expect.any(String) },
  ]);
  expect(refused.headers.get("retry-after")).toBe("1");
  expect((await send("GET", `${root}/full`)).status).toBe(404);
});

describe("bad input", () => {
  const token = { authorization: "Bearer 1.AAAA" };
  const report = { wake_id: "w", generation: 1 };
  const long = "x".repeat(limits.streamPathBytesMax + 1);
  const most = limits.subscriptionRequestStreamsMax;

  /** method, path, body, status, code, the protocol's code */
  const table: readonly [string, string, unknown, number, string, string][] = [
    ["PUT", "/x", "", 400, "bad_subscription", "INVALID_REQUEST"],
    ["PUT", "/x", "{", 400, "bad_json", "INVALID_REQUEST"],
    ["PUT", "/x", "[]", 400, "bad_subscription", "INVALID_REQUEST"],
    ["PUT", "/x", "null", 400, "bad_subscription", "INVALID_REQUEST"],
    ["PUT", "/x", "1", 400, "bad_subscription", "INVALID_REQUEST"],
    ["PUT", "/x", "[".repeat(100_000), 400, "bad_json", "INVALID_REQUEST"],
    ["PUT", "/x", { ...pull, type: "push" }, 400, "bad_subscription", "INVALID_REQUEST"],
    ["PUT", "/x", { type: "webhook", pattern: "a" }, 400, "bad_subscription", "INVALID_REQUEST"],
    [
      "PUT",
      "/x",
      { type: "webhook", pattern: "a", webhook: "u" },
      400,
      "bad_subscription",
      "INVALID_REQUEST",
    ],
    [
      "PUT",
      "/x",
      { type: "webhook", pattern: "a", webhook: { url: 1 } },
      400,
      "bad_subscription",
      "INVALID_REQUEST",
    ],
    [
      "PUT",
      "/x",
      { type: "webhook", pattern: "a", webhook: { url: "http://10.0.0.1/" } },
      400,
      "webhook_rejected",
      "WEBHOOK_URL_REJECTED",
    ],
    [
      "PUT",
      "/x",
      { type: "webhook", pattern: "a", webhook: { url: "x" } },
      400,
      "webhook_rejected",
      "WEBHOOK_URL_REJECTED",
    ],
    [
      "PUT",
      "/x",
      { type: "webhook", pattern: "a", webhook: { url: `https://a.example/${"x".repeat(3000)}` } },
      400,
      "webhook_rejected",
      "WEBHOOK_URL_REJECTED",
    ],
    ["PUT", "/x", { type: "pull-wake", pattern: "a" }, 400, "bad_subscription", "INVALID_REQUEST"],
    [
      "PUT",
      "/x",
      { ...pull, wake_stream: "_forebay/x" },
      400,
      "bad_subscription",
      "INVALID_REQUEST",
    ],
    ["PUT", "/x", { ...pull, wake_stream: "__ds/x" }, 400, "bad_subscription", "INVALID_REQUEST"],
    ["PUT", "/x", { ...pull, streams: ["wake"] }, 400, "bad_subscription", "INVALID_REQUEST"],
    ["PUT", "/x", { ...pull, pattern: undefined }, 400, "bad_subscription", "INVALID_REQUEST"],
    ["PUT", "/x", { ...pull, pattern: 1 }, 400, "bad_subscription", "INVALID_REQUEST"],
    ["PUT", "/x", { ...pull, pattern: "a-*" }, 400, "bad_subscription", "INVALID_REQUEST"],
    ["PUT", "/x", { ...pull, pattern: "a//b" }, 400, "bad_path", "INVALID_REQUEST"],
    [
      "PUT",
      "/x",
      { ...pull, pattern: "*/".repeat(40) },
      400,
      "bad_subscription",
      "INVALID_REQUEST",
    ],
    ["PUT", "/x", { ...pull, pattern: long }, 400, "bad_subscription", "INVALID_REQUEST"],
    ["PUT", "/x", { ...pull, streams: "a" }, 400, "bad_subscription", "INVALID_REQUEST"],
    ["PUT", "/x", { ...pull, streams: [1] }, 400, "bad_subscription", "INVALID_REQUEST"],
    ["PUT", "/x", { ...pull, streams: [""] }, 400, "bad_subscription", "INVALID_REQUEST"],
    ["PUT", "/x", { ...pull, streams: ["a/../b"] }, 400, "bad_path", "INVALID_REQUEST"],
    ["PUT", "/x", { ...pull, streams: [long] }, 400, "bad_path", "INVALID_REQUEST"],
    [
      "PUT",
      "/x",
      { ...pull, streams: Array.from({ length: most + 1 }, () => "a") },
      400,
      "bad_subscription",
      "INVALID_REQUEST",
    ],
    ...[999, 600_001, 1000.5, "1000", null].map(
      (lease): [string, string, unknown, number, string, string] => [
        "PUT",
        "/x",
        { ...pull, lease_ttl_ms: lease },
        400,
        "bad_subscription",
        "INVALID_REQUEST",
      ],
    ),
    ["PUT", "/x", { ...pull, description: 1 }, 400, "bad_subscription", "INVALID_REQUEST"],
    [
      "PUT",
      "/x",
      { ...pull, description: "d".repeat(1025) },
      400,
      "bad_subscription",
      "INVALID_REQUEST",
    ],
    [
      "PUT",
      "/x",
      { ...pull, description: "d".repeat(300_000) },
      413,
      "body_too_large",
      "BODY_TOO_LARGE",
    ],
    ["PUT", `/${"i".repeat(257)}`, pull, 400, "bad_path", "INVALID_REQUEST"],
    ["PUT", "/%00", pull, 400, "bad_path", "INVALID_REQUEST"],
    ["PUT", "/%ff", pull, 400, "bad_path", "INVALID_REQUEST"],
    ["PUT", "/%2e%2e", pull, 400, "bad_path", "INVALID_REQUEST"],
    ["GET", "/none", undefined, 404, "subscription_not_found", "SUBSCRIPTION_NOT_FOUND"],
    [
      "POST",
      "/none/streams",
      { streams: ["a"] },
      404,
      "subscription_not_found",
      "SUBSCRIPTION_NOT_FOUND",
    ],
    [
      "DELETE",
      "/none/streams/a",
      undefined,
      404,
      "subscription_not_found",
      "SUBSCRIPTION_NOT_FOUND",
    ],
    [
      "POST",
      "/none/claim",
      { worker: "w" },
      404,
      "subscription_not_found",
      "SUBSCRIPTION_NOT_FOUND",
    ],
    ["POST", "/none/claim", {}, 400, "bad_subscription", "INVALID_REQUEST"],
    [
      "POST",
      "/none/claim",
      { worker: "w".repeat(257) },
      400,
      "bad_subscription",
      "INVALID_REQUEST",
    ],
    ["POST", "/none/streams", {}, 400, "bad_subscription", "INVALID_REQUEST"],
    ["POST", "/none/ack", report, 404, "subscription_not_found", "SUBSCRIPTION_NOT_FOUND"],
    ["POST", "/p/ack", report, 401, "bad_token", "TOKEN_INVALID"],
    ["POST", "/p/release", report, 401, "bad_token", "TOKEN_INVALID"],
    ["POST", "/p/callback", report, 401, "bad_token", "TOKEN_INVALID"],
    ["POST", "/p/ack", {}, 400, "bad_subscription", "INVALID_REQUEST"],
    ["POST", "/p/ack", { ...report, generation: "1" }, 400, "bad_subscription", "INVALID_REQUEST"],
    ["POST", "/p/ack", { ...report, done: 1 }, 400, "bad_subscription", "INVALID_REQUEST"],
    ["POST", "/p/ack", { ...report, acks: {} }, 400, "bad_subscription", "INVALID_REQUEST"],
    ["POST", "/p/ack", { ...report, acks: [null] }, 400, "bad_subscription", "INVALID_REQUEST"],
    [
      "POST",
      "/p/ack",
      { ...report, acks: [{ stream: "a" }] },
      400,
      "bad_subscription",
      "INVALID_REQUEST",
    ],
    [
      "POST",
      "/p/ack",
      { ...report, acks: [{ stream: "..", offset: "x" }] },
      400,
      "bad_path",
      "INVALID_REQUEST",
    ],
    ["POST", "/p/claim", { worker: "w" }, 409, "no_pending_work", "NO_PENDING_WORK"],
    [
      "PUT",
      "/p",
      { ...pull, lease_ttl_ms: 2000 },
      409,
      "subscription_exists",
      "SUBSCRIPTION_ALREADY_EXISTS",
    ],
    ["POST", "/p", pull, 405, "method_not_allowed", "METHOD_NOT_ALLOWED"],
    ["PUT", "/p/streams", { streams: [] }, 405, "method_not_allowed", "METHOD_NOT_ALLOWED"],
    ["GET", "/p/claim", undefined, 405, "method_not_allowed", "METHOD_NOT_ALLOWED"],
    ["POST", "/p/nothing", {}, 404, "not_found", "NOT_FOUND"],
    ["POST", "/p/claim/more", {}, 404, "not_found", "NOT_FOUND"],
    ["GET", "", undefined, 404, "not_found", "NOT_FOUND"],
    ["GET", "/", undefined, 400, "bad_path", "INVALID_REQUEST"],
  ];
  beforeAll(async () => {
    await send("PUT", `${root}/p`, pull);
  });

  test.each(table)("%s %s %j is %d %s", async (method, path, body, status, code, protocolCode) => {
    const answer = await send(method, root + path, body, token);
    expect([answer.status, answer.json["code"]]).toEqual([status, code]);
    expect(answer.json["error"]).toMatchObject({ code: protocolCode });
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
  });

  test("a body nested as deep as it may be long is refused like any other", async () => {
    const deep = "[".repeat(100_000) + "]".repeat(100_000);
    for (const [method, path, body] of [
      ["PUT", "/x", `{"type":${deep}}`],
      ["PUT", "/x", `{"type":"pull-wake","wake_stream":${deep}}`],
      ["PUT", "/x", deep],
      ["POST", "/p/claim", `{"worker":${deep}}`],
      ["POST", "/p/ack", `{"wake_id":"w","generation":1,"acks":${deep}}`],
    ] as const) {
      const answer = await send(method, root + path, body, token);
      expect([answer.status, answer.json["code"]]).toEqual([400, "bad_subscription"]);
    }
  });

  test("a body that is not UTF-8, or compressed, is refused", async () => {
    const raw = await fetch(`${gateway.url}${root}/x`, {
      method: "PUT",
      body: new Uint8Array([0x7b, 0xff, 0x7d]),
    });
    expect([raw.status, ((await raw.json()) as { code: string }).code]).toEqual([400, "bad_utf8"]);
    const zipped = await send("PUT", `${root}/x`, pull, { "content-encoding": "gzip" });
    expect([zipped.status, zipped.json["code"]]).toEqual([415, "unsupported_media_type"]);
  });

  test("P14 no stream lies below __ds, however it is spelled", async () => {
    const made = await send("PUT", "/v1/stream/%5f_ds/subscriptions/x", "x", {
      "content-type": "text/plain",
    });
    expect([made.status, made.json["code"]]).toEqual([403, "reserved_path"]);
    const appended = await send("POST", "/v1/stream/%5F_ds/x", "x", {
      "content-type": "text/plain",
    });
    expect([appended.status, appended.json["code"]]).toEqual([403, "reserved_path"]);
    const ingested = await send("POST", "/v1/ingest/__ds/x", "[1]", {
      "content-type": "application/json",
    });
    expect([ingested.status, ingested.json["code"]]).toEqual([403, "reserved_path"]);
    expect((await send("GET", "/v1/stream/__ds")).status).toBe(404);
    expect(
      (await send("PUT", "/v1/stream/__dsx", "x", { "content-type": "text/plain" })).status,
    ).toBe(201);
  });

  test("a Host or a public URL that is none is refused", async () => {
    const body = JSON.stringify(pull);
    const head = `PUT ${root}/x HTTP/1.1\r\nHost: 127.0.0.1\r\nForebay-Public-Url: ftp://x\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const answer = await rawRequest(gateway.port, head);
    expect([answer.status, JSON.parse(answer.body).code]).toEqual([400, "bad_header"]);
  });
});

test("P14 an id and a stream may be percent-encoded; an encoded slash is a slash", async () => {
  const made = await send("PUT", `${root}/caf%C3%A9:1%20x`, { ...pull, streams: ["/named/%61/"] });
  expect([made.status, made.json["id"]]).toEqual([201, "café:1 x"]);
  expect(made.json["streams"]).toEqual([
    { path: "named/a", link_type: "explicit", acked_offset: "-1" },
  ]);
  expect((await send("DELETE", `${root}/caf%c3%a9:1%20x/streams/named%2Fa`)).status).toBe(204);
  const { json } = await send("GET", `${root}/caf%C3%A9:1%20x`);
  expect(json["streams"]).toEqual([]);
});

test("with a key, subscriptions need it and reports need only their token", async () => {
  const keyed = await startGateway({ key: "right", publicUrl: "https://streams.example" });
  const key = { authorization: "Bearer right" };
  try {
    const ask = (method: string, path: string, body: unknown, headers = {}) =>
      send(method, root + path, body, headers, keyed.url);
    for (const [method, path, body] of [
      ["PUT", "/p", pull],
      ["GET", "/p", undefined],
      ["DELETE", "/p", undefined],
      ["POST", "/p/streams", { streams: ["a"] }],
      ["DELETE", "/p/streams/a", undefined],
      ["POST", "/p/claim", { worker: "w" }],
    ] as const) {
      const refused = await ask(method, path, body, { authorization: "Bearer wrong" });
      expect([refused.status, refused.json["error"]], `${method} ${path}`).toEqual([
        401,
        { code: "UNAUTHORIZED", message: expect.any(String) },
      ]);
    }
    const before = await fetch(`${keyed.url}/v1/stream/__ds/jwks.json`);
    expect([before.headers.get("cache-control"), await before.json()]).toEqual([
      "no-store",
      { keys: [] },
    ]);
    expect((await ask("PUT", "/p", pull, key)).status).toBe(201);
    await send(
      "PUT",
      "/v1/stream/jobs/1",
      "x",
      { ...key, "content-type": "text/plain" },
      keyed.url,
    );
    const claim = await ask("POST", "/p/claim", { worker: "w" }, key);
    const { token, wake_id, generation } = claim.json;
    const report = { wake_id, generation };
    expect((await ask("POST", "/p/ack", report)).status).toBe(401);
    expect((await ask("POST", "/p/ack", report, key)).json["code"]).toBe("bad_token");
    const own = { authorization: `Bearer ${String(token)}` };
    expect((await ask("POST", "/p/ack", report, own)).status).toBe(200);
    const page = { ...own, origin: "https://evil.example" };
    expect((await ask("POST", "/p/ack", report, page)).json["code"]).toBe("origin_not_allowed");
    expect((await ask("POST", "/p/release", report, own)).status).toBe(204);
    const made = await ask("PUT", "/h", { ...hook(), streams: ["a"] }, key);
    expect(made.json["webhook"]).toMatchObject({
      signing: { jwks_url: "https://streams.example/v1/stream/__ds/jwks.json" },
    });
  } finally {
    await keyed.close();
  }
});
