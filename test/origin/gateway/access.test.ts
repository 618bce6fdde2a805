import { afterAll, beforeAll, expect, test } from "vitest";
import { startGateway, type GatewayUnderTest } from "./gatewayUnderTest.ts";
import { rawRequest } from "./rawHttp.ts";
import "./eventually.ts";

const key = "a-secret-of-some-length";
const page = "https://app.example";
let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await startGateway({ key, allowedOrigins: [page] });
  await fetch(`${gateway.url}/v1/stream/s`, {
    method: "PUT",
    headers: { authorization: `Bearer ${key}`, "content-type": "text/plain" },
    body: "x",
  });
});
afterAll(() => gateway.close());

const writes: readonly [string, string][] = [
  ["PUT", "/v1/stream/new"],
  ["POST", "/v1/stream/s"],
  ["DELETE", "/v1/stream/s"],
  ["POST", "/v1/ingest/s"],
  ["POST", "/v1/frames"],
];

test.each(writes)("the key guards %s %s", async (method, path) => {
  for (const authorization of [
    null,
    "Bearer wrong",
    `Bearer ${key}x`,
    `Basic ${key}`,
    "Bearer",
    key,
  ]) {
    const answer = await fetch(`${gateway.url}${path}`, {
      method,
      headers: {
        "content-type": "text/plain",
        ...(authorization === null ? {} : { authorization }),
      },
      ...(method === "DELETE" ? {} : { body: "y" }),
    });
    const { code } = (await answer.json()) as { code: string };
    expect([answer.status, code]).toEqual([401, "unauthorized"]);
    expect(answer.headers.get("www-authenticate")).toContain("Bearer");
  }
  expect(await (await fetch(`${gateway.url}/v1/stream/s`)).text()).toBe("x");
});

test("the key of a beacon travels in the URL; a wrong header is not made up for by it", async () => {
  const post = (headers: Record<string, string>): Promise<Response> =>
    fetch(`${gateway.url}/v1/ingest/beacon?key=${key}`, {
      method: "POST",
      headers,
      body: '{"a":1}',
    });
  expect((await post({ "content-type": "text/plain" })).status).toBe(200);
  expect((await post({ authorization: "Bearer wrong" })).status).toBe(401);
});

test("an unauthorised body is not waited for", async () => {
  const head =
    "POST /v1/stream/s HTTP/1.1\r\nHost: h\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\n";
  expect((await rawRequest(gateway.port, head)).status).toBe(401);
});

test.each(["/v1/stream/s", "/v1/streams", "/livez", "/readyz", "/metrics"])(
  "%s is open to readers",
  async (path) => {
    expect((await fetch(`${gateway.url}${path}`)).status).toBe(200);
  },
);

test("the key appears in no answer", async () => {
  const answer = await fetch(`${gateway.url}/v1/nothing?key=${key}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  expect(await answer.text()).not.toContain(key);
  expect(await (await fetch(`${gateway.url}/metrics`)).text()).not.toContain(key);
});

test("I5 an allowed page gets its own origin back, never a star", async () => {
  for (const path of ["/v1/stream/s", "/v1/stream/unknown", "/v1/stream/s?live=sse"]) {
    const answer = await fetch(`${gateway.url}${path}`, { headers: { origin: page } });
    expect(answer.headers.get("access-control-allow-origin")).toBe(page);
    expect(answer.headers.get("vary")).toContain("Origin");
    expect(answer.headers.get("access-control-allow-credentials")).toBeNull();
    expect(answer.headers.get("access-control-expose-headers")).toContain("stream-next-offset");
    await answer.body?.cancel();
  }
});

test("I5 another page reads nothing and writes nothing", async () => {
  const headers = {
    origin: "https://evil.example",
    authorization: `Bearer ${key}`,
    "content-type": "text/plain",
  };
  const read = await fetch(`${gateway.url}/v1/stream/s`, { headers });
  expect([read.headers.get("access-control-allow-origin"), read.headers.get("vary")]).toEqual([
    null,
    "Origin",
  ]);
  const write = await fetch(`${gateway.url}/v1/stream/s`, { method: "POST", headers, body: "z" });
  expect([write.status, ((await write.json()) as { code: string }).code]).toEqual([
    403,
    "origin_not_allowed",
  ]);
});

test("I5 pages of this machine may always call", async () => {
  const origin = "http://localhost:5173";
  const answer = await fetch(`${gateway.url}/v1/stream/s`, { headers: { origin } });
  expect(answer.headers.get("access-control-allow-origin")).toBe(origin);
});

test("I5 P13 the preflight lists what clients send and is kept for two hours", async () => {
  const ask = (path: string, origin: string): Promise<Response> =>
    fetch(`${gateway.url}${path}`, {
      method: "OPTIONS",
      headers: {
        origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "producer-id, if-none-match",
      },
    });
  for (const path of ["/v1/stream/s", "/v1/ingest/s", "/v1/streams"]) {
    const answer = await ask(path, page);
    expect(answer.status).toBe(204);
    expect(answer.headers.get("access-control-allow-origin")).toBe(page);
    expect(answer.headers.get("access-control-max-age")).toBe("7200");
    const allowed = answer.headers.get("access-control-allow-headers") ?? "";
    for (const name of [
      "authorization",
      "content-type",
      "producer-id",
      "producer-epoch",
      "producer-seq",
      "stream-seq",
      "if-none-match",
      "forebay-ack",
    ]) {
      expect(allowed).toContain(name);
    }
  }
  expect(
    (await ask("/v1/stream/s", "https://evil.example")).headers.get("access-control-allow-origin"),
  ).toBeNull();
});
