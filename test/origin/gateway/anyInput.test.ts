import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startGateway, type GatewayUnderTest } from "./gatewayUnderTest.ts";
import { rawRequest } from "./rawHttp.ts";
import "./eventually.ts";

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await startGateway({ longPollMs: 50, sseLifetimeMs: 50 });
  for (const [path, type] of [
    ["json", "application/json"],
    ["text", "text/plain"],
  ] as const) {
    await fetch(`${gateway.url}/v1/stream/${path}`, {
      method: "PUT",
      headers: { "content-type": type },
    });
  }
});
afterAll(() => gateway.close());

const odd = fc
  .string({ unit: "binary-ascii", maxLength: 20 })
  .map((text) => text.replaceAll(/[\r\n\0]/g, ""));
const oneOf = (...values: string[]): fc.Arbitrary<string> => fc.constantFrom(...values);

const target = fc
  .tuple(
    oneOf(
      "/v1/stream/",
      "/v1/ingest/",
      "/v1/streams",
      "/v1/frames",
      "/metrics",
      "/",
      "",
      "*",
      "//",
      "http://h/v1/stream/",
    ),
    fc.oneof(oneOf("json", "text", "new", "%", "%2e%2e/x", "a//b", "_forebay/q", "?", "#"), odd),
    fc.oneof(
      oneOf(
        "",
        "?offset=-1",
        "?offset=now&live=long-poll",
        "?offset=-1&live=sse",
        "?offset=zz",
        "?ack=none",
        "?ack=",
        "?limit=-1",
        "?key=%ff",
      ),
      odd,
    ),
  )
  .map((parts) => parts.join("").replaceAll(" ", ""));

const field = fc
  .tuple(
    oneOf(
      "Host",
      "Content-Type",
      "Stream-Seq",
      "Stream-Closed",
      "Stream-TTL",
      "Stream-Expires-At",
      "Producer-Id",
      "Producer-Epoch",
      "Producer-Seq",
      "Forebay-Ack",
      "If-None-Match",
      "Origin",
      "Expect",
      "Authorization",
      "Content-Encoding",
      "Stream-Expected-Offset",
      "X",
    ),
    fc.oneof(
      oneOf(
        "application/json",
        "text/plain",
        "application/vnd.forebay.frames",
        "0",
        "1",
        "true",
        "100-continue",
        "*",
        '"x"',
        "2030-01-01T00:00:00Z",
        "-1",
        "",
      ),
      odd,
    ),
  )
  .map(([name, value]) => `${name}: ${value}\r\n`);

const body = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc.json().map((text) => Buffer.from(text)),
  oneOf("", "[", "[]", '{"a":1}\n{', "null").map((text) => Buffer.from(text)),
);

const request = fc
  .tuple(
    oneOf("GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "QUERY"),
    target,
    fc.array(field, { maxLength: 6 }),
    body,
    fc.boolean(),
  )
  .map(([method, url, fields, bytes, chunked]) => {
    const length = chunked
      ? "Transfer-Encoding: chunked\r\n"
      : `Content-Length: ${bytes.length}\r\n`;
    const head = `${method} ${url} HTTP/1.1\r\n${fields.join("")}${length}Connection: close\r\n\r\n`;
    const end = chunked
      ? [
          Buffer.from(bytes.length > 0 ? `${bytes.length.toString(16)}\r\n` : ""),
          bytes,
          Buffer.from(bytes.length > 0 ? "\r\n0\r\n\r\n" : "0\r\n\r\n"),
        ]
      : [bytes];
    return Buffer.concat([Buffer.from(head, "latin1"), ...end]);
  });

test("I8 no request gets a 500 or no answer, whatever it is", async () => {
  await fc.assert(
    fc.asyncProperty(request, async (bytes) => {
      const { status, text } = await rawRequest(gateway.port, bytes);
      const shown = `${JSON.stringify(bytes.toString("latin1"))} → ${text.slice(0, 300)}`;
      expect(status >= 100 && status < 500, shown).toBe(true);
    }),
    { numRuns: 1500 },
  );
  expect((await fetch(`${gateway.url}/livez`)).status).toBe(200);
  expect(await (await fetch(`${gateway.url}/metrics`)).text()).toContain(
    "forebay_requests_waiting 0\n",
  );
}, 60_000);
