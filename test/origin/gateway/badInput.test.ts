import { afterAll, beforeAll, expect, test } from "vitest";
import { startGateway, type GatewayUnderTest } from "./gatewayUnderTest.ts";
import { rawRequest, type RawAnswer } from "./rawHttp.ts";
import "./eventually.ts";

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await startGateway();
  for (const [path, type] of [
    ["json", "application/json"],
    ["text", "text/plain"],
    ["closed", "text/plain"],
  ] as const) {
    await send("PUT", `/v1/stream/${path}`, { "content-type": type });
  }
  await send("POST", "/v1/stream/closed", { "stream-closed": "true" });
});
afterAll(() => gateway.close());

function send(
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body: string | Uint8Array<ArrayBuffer> | null = null,
): Promise<Response> {
  return fetch(`${gateway.url}${path}`, { method, headers, body });
}

const json = { "content-type": "application/json" };
const text = { "content-type": "text/plain" };
const producer = { "producer-id": "p", "producer-epoch": "0", "producer-seq": "0" };
const tail1 = "0000000000000001_0000000000000001";

/** method, path, headers, body → status, code */
const table: readonly [
  string,
  string,
  Record<string, string>,
  string | Uint8Array<ArrayBuffer> | null,
  number,
  string,
][] = [
  ["POST", "/v1/stream/json", json, '{"a":', 400, "bad_json"],
  ["POST", "/v1/stream/json", json, "[1,2", 400, "bad_json"],
  ["POST", "/v1/stream/json", json, "NaN", 400, "bad_json"],
  ["POST", "/v1/stream/json", json, new Uint8Array([0x22, 0xff, 0x22]), 400, "bad_utf8"],
  ["POST", "/v1/stream/json", json, "[]", 400, "empty_array"],
  ["POST", "/v1/stream/json", json, `${"[".repeat(66)}1${"]".repeat(66)}`, 400, "json_too_deep"],
  ["POST", "/v1/stream/json", json, `[${"1,".repeat(10_000)}1]`, 413, "too_many_records"],
  ["POST", "/v1/stream/json", json, null, 400, "empty_body"],
  ["POST", "/v1/stream/json", text, "1", 409, "content_type_mismatch"],
  ["POST", "/v1/stream/json", { "content-type": "nonsense" }, "1", 400, "bad_header"],
  [
    "POST",
    "/v1/stream/json",
    { ...json, "content-encoding": "gzip" },
    "1",
    415,
    "unsupported_media_type",
  ],
  ["POST", "/v1/stream/text", text, null, 400, "empty_body"],
  ["POST", "/v1/stream/closed", text, "x", 409, "stream_closed"],
  ["POST", "/v1/stream/unknown", text, "x", 404, "stream_not_found"],
  ["POST", "/v1/stream/unknown", { "stream-closed": "true" }, null, 404, "stream_not_found"],
  ["POST", "/v1/stream/text", { ...text, "producer-id": "p" }, "x", 400, "bad_producer"],
  [
    "POST",
    "/v1/stream/text",
    { ...text, ...producer, "producer-epoch": "-1" },
    "x",
    400,
    "bad_producer",
  ],
  [
    "POST",
    "/v1/stream/text",
    { ...text, ...producer, "producer-seq": "1e3" },
    "x",
    400,
    "bad_producer",
  ],
  [
    "POST",
    "/v1/stream/text",
    { ...text, ...producer, "producer-seq": "9007199254740993" },
    "x",
    400,
    "bad_producer",
  ],
  [
    "POST",
    "/v1/stream/text",
    { ...text, ...producer, "producer-id": "" },
    "x",
    400,
    "bad_producer",
  ],
  [
    "POST",
    "/v1/stream/text",
    { ...text, ...producer, "producer-id": "i".repeat(257) },
    "x",
    400,
    "bad_producer",
  ],
  ["POST", "/v1/stream/text", { ...text, "stream-seq": "s".repeat(257) }, "x", 400, "bad_header"],
  [
    "POST",
    "/v1/stream/text",
    { ...text, "stream-expected-offset": tail1 },
    "x",
    409,
    "offset_mismatch",
  ],
  [
    "POST",
    "/v1/stream/text",
    { ...text, "forebay-ack": "replicated" },
    "x",
    400,
    "ack_unavailable",
  ],
  ["POST", "/v1/stream/text?ack=memory", text, "x", 400, "ack_unavailable"],
  ["POST", "/v1/stream/text?ack=none&ack=none", text, "x", 400, "bad_query"],
  ["POST", "/v1/stream/%zz", text, "x", 400, "bad_path"],
  ["POST", "/v1/stream/a%00b", text, "x", 400, "bad_path"],
  ["POST", "/v1/stream/a//b", text, "x", 400, "bad_path"],
  ["POST", "/v1/stream/", text, "x", 400, "bad_path"],
  ["POST", `/v1/stream/${"p".repeat(1025)}`, text, "x", 400, "bad_path"],
  ["POST", "/v1/stream/_forebay/quarantine", text, "x", 403, "reserved_path"],
  ["PUT", "/v1/stream/_forebay/x", text, null, 403, "reserved_path"],
  ["PUT", "/v1/stream/json", text, null, 409, "stream_conflict"],
  ["PUT", "/v1/stream/new", { ...text, "stream-ttl": "-1" }, null, 400, "bad_header"],
  ["PUT", "/v1/stream/new", { ...text, "stream-ttl": "01" }, null, 400, "bad_header"],
  ["PUT", "/v1/stream/new", { ...text, "stream-expires-at": "soon" }, null, 400, "bad_header"],
  [
    "PUT",
    "/v1/stream/new",
    { ...text, "stream-ttl": "1", "stream-expires-at": "2030-01-01T00:00:00Z" },
    null,
    400,
    "bad_header",
  ],
  ["PUT", "/v1/stream/new", { ...text, "stream-forked-from": "text" }, null, 400, "bad_header"],
  [
    "PUT",
    "/v1/stream/new",
    { ...text, "stream-forked-from": "/v1/stream/a//b" },
    null,
    400,
    "bad_path",
  ],
  ["PUT", "/v1/stream/new", { ...text, "stream-forked-from": "" }, null, 400, "bad_header"],
  ["PUT", "/v1/stream/new", { ...text, "stream-fork-offset": tail1 }, null, 400, "bad_header"],
  ["PUT", "/v1/stream/new", { ...text, "stream-fork-sub-offset": "0" }, null, 400, "bad_header"],
  [
    "PUT",
    "/v1/stream/new",
    { "stream-forked-from": "/v1/stream/text", "stream-fork-offset": "-1" },
    null,
    400,
    "bad_offset",
  ],
  [
    "PUT",
    "/v1/stream/new",
    { "stream-forked-from": "/v1/stream/text", "stream-fork-offset": tail1 },
    null,
    400,
    "bad_offset",
  ],
  [
    "PUT",
    "/v1/stream/new",
    { "stream-forked-from": "/v1/stream/text", "stream-fork-sub-offset": "01" },
    null,
    400,
    "bad_header",
  ],
  [
    "PUT",
    "/v1/stream/new",
    { "stream-forked-from": "/v1/stream/text", "stream-fork-sub-offset": "1" },
    null,
    400,
    "bad_offset",
  ],
  [
    "PUT",
    "/v1/stream/new",
    { ...json, "stream-forked-from": "/v1/stream/text" },
    null,
    409,
    "content_type_mismatch",
  ],
  [
    "PUT",
    "/v1/stream/new",
    { "stream-forked-from": "/v1/stream/unknown" },
    null,
    404,
    "stream_not_found",
  ],
  ["PUT", "/v1/stream/new", json, "{", 400, "bad_json"],
  ["DELETE", "/v1/stream/unknown", {}, null, 404, "stream_not_found"],
  ["GET", "/v1/stream/unknown", {}, null, 404, "stream_not_found"],
  ["GET", "/v1/stream/text?offset=", {}, null, 400, "bad_offset"],
  ["GET", "/v1/stream/text?offset=1,2", {}, null, 400, "bad_offset"],
  ["GET", `/v1/stream/text?offset=${tail1}`, {}, null, 400, "bad_offset"],
  ["GET", "/v1/stream/text?offset=-1&offset=now", {}, null, 400, "bad_query"],
  ["GET", "/v1/stream/text?live=sse", {}, null, 400, "bad_query"],
  ["GET", "/v1/stream/text?live=long-poll", {}, null, 400, "bad_query"],
  ["GET", "/v1/stream/text?live=yes&offset=-1", {}, null, 400, "bad_query"],
  ["GET", "/v1/streams?limit=0", {}, null, 400, "bad_query"],
  ["GET", "/v1/streams?limit=1001", {}, null, 400, "bad_query"],
  ["POST", "/v1/ingest/i", json, "{", 400, "bad_json"],
  ["POST", "/v1/ingest/i", json, "[]", 400, "empty_array"],
  ["POST", "/v1/ingest/i", json, null, 400, "empty_body"],
  ["POST", "/v1/ingest/i", { "content-type": "image/png" }, "1", 415, "unsupported_media_type"],
  [
    "POST",
    "/v1/ingest/i",
    { ...json, "content-encoding": "br" },
    "1",
    415,
    "unsupported_media_type",
  ],
  ["POST", "/v1/frames", text, "x", 415, "unsupported_media_type"],
  [
    "POST",
    "/v1/frames",
    { "content-type": "application/vnd.forebay.frames" },
    "\u0005\0\0\0abcde",
    400,
    "bad_frame",
  ],
  ["PATCH", "/v1/stream/text", text, "x", 405, "method_not_allowed"],
  ["GET", "/v1/frames", {}, null, 405, "method_not_allowed"],
  ["GET", "/v1/ingest/i", {}, null, 405, "method_not_allowed"],
  ["POST", "/v1/streams", text, "x", 405, "method_not_allowed"],
  ["GET", "/v2/stream/text", {}, null, 404, "not_found"],
  ["GET", "/", {}, null, 404, "not_found"],
];

test.each(table)(
  "I8 %s %s %j is refused with its code",
  async (method, path, headers, body, status, code) => {
    const answer = await send(method, path, headers, body);
    const problem = (await answer.json()) as { code: string; status: number; detail: string };
    expect([answer.status, problem.code, problem.status]).toEqual([status, code, status]);
    expect(problem.detail.length).toBeGreaterThan(10);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    expect(answer.headers.get("cross-origin-resource-policy")).toBe("cross-origin");
  },
);

test("nothing of a refused request is applied", async () => {
  const { streams, tail } = await listed();
  for (const [method, path, headers, body] of table) {
    await (await send(method, path, headers, body)).arrayBuffer();
  }
  expect(await listed()).toEqual({ streams, tail });
});

async function listed(): Promise<{ streams: unknown; tail: string | null }> {
  const { streams } = (await (await send("GET", "/v1/streams")).json()) as { streams: unknown };
  const head = await send("HEAD", "/v1/stream/text");
  return { streams, tail: head.headers.get("stream-next-offset") };
}

const host = "Host: h\r\n";

/** What no HTTP client sends → status, code, or null where only the connection ends. */
const malformed: readonly [string, string, number, string][] = [
  ["no HTTP", "hello\r\n\r\n", 400, "bad_request"],
  ["a bad header name", `GET /livez HTTP/1.1\r\n${host}bad name: x\r\n\r\n`, 400, "bad_request"],
  ["a NUL in a header", `GET /livez HTTP/1.1\r\n${host}x: a\0b\r\n\r\n`, 400, "bad_request"],
  ["no Host", "GET /livez HTTP/1.1\r\n\r\n", 400, "bad_header"],
  ["two Hosts", `GET /livez HTTP/1.1\r\n${host}${host}\r\n`, 400, "bad_header"],
  ["HTTP/2.0", `GET /livez HTTP/2.0\r\n${host}\r\n`, 505, "http_version_not_supported"],
  [
    "HTTP/2.0 on an append",
    `POST /v1/stream/text HTTP/2.0\r\n${host}Content-Type: text/plain\r\nContent-Length: 1\r\n\r\nx`,
    505,
    "http_version_not_supported",
  ],
  ["CONNECT", `CONNECT h:1 HTTP/1.1\r\n${host}\r\n`, 405, "method_not_allowed"],
  [
    "an absolute form without a host",
    `GET http://a@b/livez HTTP/1.1\r\n${host}\r\n`,
    404,
    "not_found",
  ],
  ["a backslash", `GET /livez\\x HTTP/1.1\r\n${host}\r\n`, 400, "bad_request"],
  ["an asterisk", `GET * HTTP/1.1\r\n${host}\r\n`, 400, "bad_request"],
  [
    "Content-Length: NaN",
    `POST /v1/stream/text HTTP/1.1\r\n${host}Content-Length: NaN\r\n\r\n`,
    400,
    "bad_request",
  ],
  [
    "two Content-Lengths",
    `POST /v1/stream/text HTTP/1.1\r\n${host}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`,
    400,
    "bad_request",
  ],
  [
    "length and chunks",
    `POST /v1/stream/text HTTP/1.1\r\n${host}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
    400,
    "bad_request",
  ],
  [
    "a bad chunk size",
    `POST /v1/stream/text HTTP/1.1\r\n${host}Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`,
    400,
    "bad_request",
  ],
  [
    "a repeated producer header",
    `POST /v1/stream/text HTTP/1.1\r\n${host}Producer-Id: a\r\nproducer-id: b\r\nContent-Length: 0\r\n\r\n`,
    400,
    "bad_header",
  ],
  [
    "a compressed transfer",
    `POST /v1/stream/text HTTP/1.1\r\n${host}Content-Type: text/plain\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    415,
    "unsupported_media_type",
  ],
  ["dot segments", `GET /v1/stream/a/../b HTTP/1.1\r\n${host}\r\n`, 400, "bad_path"],
  ["encoded dot segments", `GET /v1/stream/a/%2e%2e/b HTTP/1.1\r\n${host}\r\n`, 400, "bad_path"],
  [
    "dots into another route",
    `POST /v1/stream/../frames HTTP/1.1\r\n${host}Content-Length: 0\r\n\r\n`,
    400,
    "bad_path",
  ],
  ["TRACE", `TRACE /v1/stream/text HTTP/1.1\r\n${host}\r\n`, 405, "method_not_allowed"],
];

test.each(malformed)(
  "I8 %s is answered, and the server stays",
  async (_name, bytes, status, code) => {
    const answer = await rawRequest(gateway.port, bytes);
    expect([answer.status, (JSON.parse(answer.body) as { code: string }).code]).toEqual([
      status,
      code,
    ]);
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    expect((await send("GET", "/livez")).status).toBe(200);
  },
);

const routes: readonly (readonly [string, string])[] = [
  ["an append", "POST /v1/stream/text"],
  ["frames", "POST /v1/frames"],
  ["a subscription", "PUT /v1/stream/__ds/subscriptions/a"],
  ["a read", "GET /v1/stream/text"],
  ["an ingest", "POST /v1/ingest/text"],
  ["a preflight", "OPTIONS /v1/stream/text"],
  ["health", "GET /livez"],
  ["nothing", "GET /nothing"],
];
const noHosts = [
  "a b/c",
  "x@y:zz",
  "a:b",
  "a:65536",
  "a/b",
  "[::1",
  "a\\b",
  "",
  "\x80",
  "a%zz",
  "[g::1]",
  ":1",
];
const goodHosts = [
  "h",
  "h:1",
  "h:",
  "A.b-c_d~e:65535",
  "1.2.3.4.5:80",
  "[::1]:80",
  "xn--a",
  "%41",
  "a,b",
];

test.each(routes)("I8 Host is judged by one rule on every route: %s", async (_name, line) => {
  const sent = (value: string): Promise<RawAnswer> =>
    rawRequest(
      gateway.port,
      `${line} HTTP/1.1\r\nHost: ${value}\r\nContent-Type: x/y\r\nContent-Length: 0\r\n\r\n`,
    );
  const codeOf = ({ body }: RawAnswer): unknown =>
    body.startsWith("{") ? (JSON.parse(body) as { code?: string }).code : undefined;
  const expected = await sent("localhost");
  expect(codeOf(expected)).not.toBe("bad_header");
  for (const value of goodHosts) {
    const answer = await sent(value);
    expect([value, answer.status, codeOf(answer)]).toEqual([
      value,
      expected.status,
      codeOf(expected),
    ]);
  }
  for (const value of noHosts) {
    const answer = await sent(value);
    expect([value, answer.status, codeOf(answer)]).toEqual([value, 400, "bad_header"]);
  }
});

test("RFC 9110 9.3.7: OPTIONS * asks what the server can do", async () => {
  const answer = await rawRequest(gateway.port, `OPTIONS * HTTP/1.1\r\n${host}\r\n`);
  expect([answer.status, answer.headers.get("allow")]).toEqual([
    204,
    "GET, HEAD, POST, PUT, DELETE, OPTIONS",
  ]);
});

test("CONNECT behind another request does not take the place of its answer", async () => {
  const get = `GET /livez HTTP/1.1\r\n${host}\r\n`;
  const { text: all } = await rawRequest(gateway.port, `${get}CONNECT h:1 HTTP/1.1\r\n${host}\r\n`);
  expect(all === "" || all.startsWith("HTTP/1.1 200")).toBe(true);
});

test("HTTP/1.0 may leave Host out", async () => {
  const answer = await rawRequest(gateway.port, "GET /livez HTTP/1.0\r\n\r\n");
  expect([answer.status, answer.body]).toEqual([200, '{"status":"ok"}']);
});

test("an absolute-form target is served as its path", async () => {
  const answer = await rawRequest(
    gateway.port,
    `GET http://elsewhere.example/livez HTTP/1.1\r\n${host}\r\n`,
  );
  expect([answer.status, answer.body]).toEqual([200, '{"status":"ok"}']);
});

test("P14 one stream, however its path is encoded", async () => {
  await send("PUT", "/v1/stream/d%65vices/%7Eone", text, "x");
  expect(await (await send("GET", "/v1/stream/devices/~one")).text()).toBe("x");
});
