import fc from "fast-check";

const odd = fc
  .string({ unit: "binary-ascii", maxLength: 20 })
  .map((text) => text.replaceAll(/[\r\n\0]/g, ""));
const oneOf = (...values: string[]): fc.Arbitrary<string> => fc.constantFrom(...values);

const target = fc
  .tuple(
    oneOf(
      ...["/v1/stream/", "/v1/stream/", "/v1/ingest/", "/v1/streams", "/v1/frames", "/v1/"],
      ...["/metrics", "/livez", "/readyz", "/", "", "*", "//", "http://h/v1/stream/"],
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
        "?offset=-1&offset=-1",
        "?cursor=9999999999999999999",
        "?prefix=%00&limit=1000001",
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
      "Forebay-Batch",
      "Range",
      "Stream-Forked-From",
      "Stream-Fork-Offset",
      "Access-Control-Request-Method",
      "Access-Control-Request-Headers",
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

/** One whole request to any route, plain or odd in each of its parts. */
export const anyRequest: fc.Arbitrary<Buffer> = fc
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
