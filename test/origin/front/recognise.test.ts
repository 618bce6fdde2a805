import { describe, expect, test } from "vitest";
import { recognise as recogniseAfter, type Recognised } from "../../../origin/front/recognise.ts";
import { limits } from "../../../shared/limits.ts";

const recognise = (head: Buffer): Recognised | null => recogniseAfter(head, null);
const bytes = (text: string): Buffer => Buffer.from(text, "latin1");
const post = (fields: string, target = "/v1/stream/s"): Buffer =>
  bytes(`POST ${target} HTTP/1.1\r\n${fields}\r\n`);
const base = "Host: h\r\nContent-Length: 3\r\n";

describe("what the recogniser reads itself", () => {
  test("target, fields, and where head and body end", () => {
    const request = recognise(
      bytes(
        `POST /v1/stream/a/b%20c?ack=none HTTP/1.1\r\nhOsT: h:1\r\nContent-Type:\t text/plain \t\r\nX: \r\ncontent-length:3\r\nConnection: Keep-Alive\r\n\r\nabcPOST`,
      ),
    );
    expect(request).not.toBeNull();
    expect(request?.url).toBe("/v1/stream/a/b%20c?ack=none");
    expect(request?.contentLength).toBe(3);
    expect(request?.headBytes).toBe(132);
    expect(request?.head.get("host")).toBe("h:1");
    expect(request?.head.get("content-type")).toBe("text/plain");
    expect(request?.head.get("stream-seq")).toBeNull();
  });

  test.each([
    ["/v1/stream/"],
    ["/v1/stream/s?"],
    ["/v1/frames"],
    ["/v1/frames?x=1"],
    ["/v1/stream/-._~:@!$&'()*+,;=%?/?"],
  ])("the target %s", (target) => {
    expect(recognise(post(base, target))?.url).toBe(target);
  });

  test.each([["0"], ["1"], ["10"], ["999999999"]])("the length %s", (length) => {
    expect(recognise(post(`Host: h\r\nContent-Length: ${length}\r\n`))?.contentLength).toBe(
      Number(length),
    );
  });

  test("each byte a name, a value and a target may have, and no other", () => {
    const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".split("");
    const names = new Set([...letters, ..."!#$%&'*+-.^_`|~".split("")]);
    const targets = new Set([...letters, ..."-._~:/?@!$&'()*+,;=%".split("")]);
    for (let code = 0; code < 256; code++) {
      const c = String.fromCharCode(code);
      const inName = recognise(post(`${base}X${c}Y: v\r\n`)) !== null;
      // A colon after the X ends the name.
      expect(inName, `0x${code.toString(16)} in a name`).toBe(names.has(c) || c === ":");
      const inValue = recognise(post(`${base}X: a${c}b\r\n`)) !== null;
      const visible = code === 9 || (code >= 0x20 && code < 0x7f);
      expect(inValue, `0x${code.toString(16)} in a value`).toBe(visible);
      const inTarget = recognise(post(base, `/v1/stream/a${c}b`)) !== null;
      expect(inTarget, `0x${code.toString(16)} in a target`).toBe(targets.has(c));
    }
  });
});

describe("what goes to node:http", () => {
  test.each([
    ["another method", "PUT /v1/stream/s HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"],
    ["a longer method", "POSTS /v1/stream/s HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"],
    [
      "a method in small letters",
      "post /v1/stream/s HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
    ],
    ["HTTP/1.0", "POST /v1/stream/s HTTP/1.0\r\nHost: h\r\nContent-Length: 0\r\n\r\n"],
    ["no version", "POST /v1/stream/s\r\nHost: h\r\nContent-Length: 0\r\n\r\n"],
    ["two spaces", "POST  /v1/stream/s HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"],
    [
      "a blank behind the version",
      "POST /v1/stream/s HTTP/1.1 \r\nHost: h\r\nContent-Length: 0\r\n\r\n",
    ],
    [
      "an empty line before it",
      "\r\nPOST /v1/stream/s HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
    ],
    ["bare line feeds", "POST /v1/stream/s HTTP/1.1\nHost: h\nContent-Length: 0\n\r\n\r\n"],
    ["a head without its end", "POST /v1/stream/s HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n"],
    ["nothing", ""],
  ])("%s", (_, text) => {
    expect(recognise(bytes(text))).toBeNull();
  });

  test.each([
    ["absolute form", "http://h/v1/stream/s"],
    ["another route", "/v1/ingest/s"],
    ["a longer route", "/v1/framesets"],
    ["a fragment", "/v1/stream/s#x"],
    ["asterisk form", "*"],
    ["no target", ""],
  ])("%s", (_, target) => {
    expect(recognise(post(base, target))).toBeNull();
  });

  test.each([
    ["no Host", "Content-Length: 3\r\n"],
    ["an empty Host", "Host: \r\nContent-Length: 3\r\n"],
    ["two Hosts", `${base}Host: h\r\n`],
    ["a Host that names no host", "Host: a b/c\r\nContent-Length: 3\r\n"],
    ["a Host with a user", "Host: x@y\r\nContent-Length: 3\r\n"],
    ["no Content-Length", "Host: h\r\n"],
    ["two equal Content-Lengths", `${base}Content-Length: 3\r\n`],
    ["two Content-Types", `${base}Content-Type: a\r\nContent-Type: a\r\n`],
    ["a line that goes on", `${base}X: a\r\n b\r\n`],
    ["a blank before the colon", `${base}X : a\r\n`],
    ["an empty name", `${base}: a\r\n`],
    ["a line without a colon", `${base}X\r\n`],
    ["a bare carriage return", `${base}X: a\rb\r\n`],
    ["a bare line feed", `${base}X: a\nY: b\r\n`],
    ["Transfer-Encoding", `${base}Transfer-Encoding: chunked\r\n`],
    ["Transfer-Encoding in capitals", `${base}TRANSFER-ENCODING: identity\r\n`],
    ["Content-Encoding", `${base}Content-Encoding: identity\r\n`],
    ["Expect", `${base}Expect: 100-continue\r\n`],
    ["Upgrade", `${base}Upgrade: h2c\r\n`],
    ["TE", `${base}TE: trailers\r\n`],
    ["Trailer", `${base}Trailer: x\r\n`],
    ["Proxy-Connection", `${base}Proxy-Connection: keep-alive\r\n`],
    ["HTTP2-Settings", `${base}HTTP2-Settings: x\r\n`],
    ["Connection: close", `${base}Connection: close\r\n`],
    ["a list in Connection", `${base}Connection: keep-alive, x\r\n`],
    ["an empty Connection", `${base}Connection:\r\n`],
  ])("%s", (_, fields) => {
    expect(recognise(post(fields))).toBeNull();
  });

  test.each([["+3"], ["-3"], ["03"], ["0x3"], ["3.0"], ["3 3"], ["3,3"], [""], ["1000000000"]])(
    "Content-Length: %s",
    (length) => {
      expect(recognise(post(`Host: h\r\nContent-Length: ${length}\r\n`))).toBeNull();
    },
  );

  test("a head of more than the limits of URL and fields together", () => {
    const room = limits.urlBytesMax + limits.headerBytesMax;
    const fill = (size: number): Buffer => {
      const start = `POST /v1/stream/s HTTP/1.1\r\n${base}X: `;
      return bytes(`${start.padEnd(size, "x")}\r\n\r\n`);
    };
    expect(recognise(fill(room))).not.toBeNull();
    expect(recognise(fill(room + 1))).toBeNull();
  });
});

describe("after another request", () => {
  const first = recognise(post(`${base}X: 1\r\n`));

  test("the same head is not read again", () => {
    expect(recogniseAfter(bytes(`${post(`${base}X: 1\r\n`).toString("latin1")}abc`), first)).toBe(
      first,
    );
  });

  test.each([
    ["another value", post(`${base}X: 2\r\n`)],
    ["another length", post("Host: h\r\nContent-Length: 4\r\nX: 1\r\n")],
    ["a field more", post(`${base}X: 1\r\nY: 1\r\n`)],
    ["another target", post(`${base}X: 1\r\n`, "/v1/stream/t")],
  ])("with %s it is", (_, head) => {
    expect(recogniseAfter(head, first)).toEqual(recognise(head));
  });

  test("of the subset another is refused all the same", () => {
    expect(recogniseAfter(post(`${base}X: 1\r\nTE: x\r\n`), first)).toBeNull();
    expect(recogniseAfter(bytes("POST /v1/stream/s HTTP/1.1\r\n"), first)).toBeNull();
  });
});
