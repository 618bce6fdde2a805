import { afterAll, beforeAll, expect, test } from "vitest";
import { limits } from "../../../shared/limits.ts";
import { startGateway, type GatewayUnderTest } from "./gatewayUnderTest.ts";
import { rawRequest } from "./rawHttp.ts";
import { eventually } from "./eventually.ts";

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await startGateway();
  await fetch(stream("bytes"), { method: "PUT" });
});
afterAll(() => gateway.close());

const stream = (path: string): string => `${gateway.url}/v1/stream/${path}`;
const octets = { "content-type": "application/octet-stream" };

async function codeOf(answer: Response): Promise<string> {
  return ((await answer.json()) as { code: string }).code;
}

/** `chunkBytes` at a time, without a Content-Length. */
function chunked(bytes: number, chunkBytes = 65_536): ReadableStream<Uint8Array> {
  let left = bytes;
  return new ReadableStream({
    pull(controller) {
      const size = Math.min(left, chunkBytes);
      left -= size;
      if (size === 0) {
        controller.close();
      } else {
        controller.enqueue(new Uint8Array(size));
      }
    },
  });
}

function postChunked(bytes: number): Promise<Response> {
  const init = { method: "POST", headers: octets, body: chunked(bytes), duplex: "half" };
  return fetch(stream("bytes"), init as RequestInit);
}

test("I3 a body of the limit is taken, one byte more is not, by Content-Length", async () => {
  const fits = await fetch(stream("bytes"), {
    method: "POST",
    headers: octets,
    body: new Uint8Array(limits.bodyBytesMax),
  });
  expect(fits.status).toBe(204);
  const over = await fetch(stream("bytes"), {
    method: "POST",
    headers: octets,
    body: new Uint8Array(limits.bodyBytesMax + 1),
  });
  expect(over.status).toBe(413);
  const problem = (await over.json()) as { code: string; detail: string };
  expect(problem.code).toBe("body_too_large");
  expect(problem.detail).toContain(String(limits.bodyBytesMax));
  expect(problem.detail).toContain(String(limits.bodyBytesMax + 1));
});

test("I3 real bytes are counted: chunked bodies have the same limit", async () => {
  expect((await postChunked(limits.bodyBytesMax)).status).toBe(204);
  const over = await postChunked(limits.bodyBytesMax + 1);
  expect([over.status, await codeOf(over)]).toEqual([413, "body_too_large"]);
});

test("I3 a connection whose body was refused serves the next request", async () => {
  const head = `POST /v1/stream/bytes HTTP/1.1\r\nHost: h\r\nContent-Type: application/octet-stream\r\nContent-Length: ${limits.bodyBytesMax + 1}\r\n\r\n`;
  const next = "GET /livez HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
  const bytes = Buffer.concat([
    Buffer.from(head),
    Buffer.alloc(limits.bodyBytesMax + 1),
    Buffer.from(next),
  ]);
  const statuses = await statusesUntilClosed(bytes);
  expect(statuses).toEqual(["413", "200"]);
});

test("I3 what goes on after a refusal is cut off in the end", async () => {
  const head =
    "POST /v1/stream/bytes HTTP/1.1\r\nHost: h\r\nContent-Type: application/octet-stream\r\nContent-Length: 99999999999\r\n\r\n";
  const statuses = await statusesUntilClosed(Buffer.from(head), 64 * 1024 * 1024);
  expect(statuses).toEqual(["413"]);
});

/** Statuses of all answers, up to the server's end of the connection. `more` bytes follow while it is open. */
async function statusesUntilClosed(bytes: Buffer, more = 0): Promise<string[]> {
  const { connect } = await import("node:net");
  return new Promise((resolve) => {
    let text = "";
    let left = more;
    const socket = connect(gateway.port, "127.0.0.1");
    const feed = (): void => {
      while (left > 0 && socket.writable) {
        left -= 1024 * 1024;
        if (!socket.write(Buffer.alloc(1024 * 1024))) {
          return;
        }
      }
    };
    socket.on("drain", feed);
    socket.write(bytes, feed);
    socket.on("data", (chunk) => (text += chunk.toString("latin1")));
    socket.on("error", () => {});
    socket.on("close", () =>
      resolve([...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map((match) => match[1] ?? "")),
    );
  });
}

test("I3 a URL of the limit is read, one byte more is not, and a huge one neither", async () => {
  const start = "/livez?x=";
  const fits = await rawRequest(gateway.port, get(start.padEnd(limits.urlBytesMax, "x")));
  expect(fits.status).toBe(200);
  const over = await rawRequest(gateway.port, get(start.padEnd(limits.urlBytesMax + 1, "x")));
  expect([over.status, codeIn(over.body)]).toEqual([414, "url_too_long"]);
  const huge = await rawRequest(gateway.port, get(start.padEnd(200_000, "x")));
  expect([huge.status, codeIn(huge.body)]).toEqual([414, "url_too_long"]);
});

test("I3 header fields of the limit are read, one byte more is not, and huge ones neither", async () => {
  // `Host: h` is 9 bytes with its line end, `x: ` and the line end are 5.
  const room = limits.headerBytesMax - 9 - 5;
  const fits = await rawRequest(gateway.port, get("/livez", `x: ${"v".repeat(room)}\r\n`));
  expect(fits.status).toBe(200);
  const over = await rawRequest(gateway.port, get("/livez", `x: ${"v".repeat(room + 1)}\r\n`));
  expect([over.status, codeIn(over.body)]).toEqual([431, "headers_too_large"]);
  const huge = await rawRequest(gateway.port, get("/livez", `x: ${"v".repeat(200_000)}\r\n`));
  expect([huge.status, codeIn(huge.body)]).toEqual([431, "headers_too_large"]);
  const many = await rawRequest(gateway.port, get("/livez", "x: 1\r\n".repeat(3000)));
  expect([many.status, codeIn(many.body)]).toEqual([431, "headers_too_large"]);
});

const get = (target: string, fields = ""): string =>
  `GET ${target} HTTP/1.1\r\nHost: h\r\n${fields}\r\n`;
const codeIn = (body: string): unknown => (JSON.parse(body) as { code: string }).code;

test("I3 10,000 records are one request, 10,001 are not", async () => {
  const ingest = (records: number): Promise<Response> =>
    fetch(`${gateway.url}/v1/ingest/many`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(Array.from({ length: records }, (_, i) => i)),
    });
  const fits = await ingest(limits.requestRecordsMax);
  expect(fits.status).toBe(200);
  expect(await fits.json()).toMatchObject({ received: 10_000, accepted: 10_000 });
  const over = await ingest(limits.requestRecordsMax + 1);
  expect([over.status, await codeOf(over)]).toEqual([413, "too_many_records"]);
});

test("I3 a record of the limit is ingested, one byte more is refused by itself", async () => {
  const record = (bytes: number): string => `"${"r".repeat(bytes - 2)}"`;
  const answer = await fetch(`${gateway.url}/v1/ingest/large`, {
    method: "POST",
    headers: { "content-type": "application/x-ndjson" },
    body: [record(limits.recordBytesMax), record(limits.recordBytesMax + 1), "1"].join("\n"),
  });
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({
    received: 3,
    accepted: 2,
    refused: [{ index: 1, code: "record_too_large" }],
  });
});

test("Expect: 100-continue is answered before the body, or with the refusal instead", async () => {
  const request = (length: number): string =>
    `POST /v1/stream/bytes HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Type: application/octet-stream\r\nContent-Length: ${length}\r\n\r\n`;
  const invited = await rawRequest(gateway.port, request(1), 300);
  expect(invited.text).toBe("HTTP/1.1 100 Continue\r\n\r\n");
  const refused = await rawRequest(gateway.port, request(limits.bodyBytesMax + 1));
  expect([refused.status, refused.text.includes("100 Continue")]).toEqual([413, false]);
});

test("P12 bodies being received have a bound together", async () => {
  const small = await startGateway({ heldBytesMax: 100_000 });
  try {
    await fetch(`${small.url}/v1/stream/s`, { method: "PUT" });
    const answer = await fetch(`${small.url}/v1/stream/s`, {
      method: "POST",
      headers: octets,
      body: new Uint8Array(1_000_000),
    });
    expect([answer.status, answer.headers.get("retry-after"), await codeOf(answer)]).toEqual([
      503,
      "1",
      "too_many_waiting",
    ]);
    const fits = await fetch(`${small.url}/v1/stream/s`, {
      method: "POST",
      headers: octets,
      body: new Uint8Array(10_000),
    });
    expect(fits.status).toBe(204);
  } finally {
    await small.close();
  }
});

test("P12 the number of those who wait has a bound", async () => {
  const small = await startGateway({ waitersMax: 1, longPollMs: 300 });
  try {
    await fetch(`${small.url}/v1/stream/s`, { method: "PUT" });
    const poll = `${small.url}/v1/stream/s?offset=now&live=long-poll`;
    const first = fetch(poll);
    await eventually(async () =>
      (await (await fetch(`${small.url}/metrics`)).text()).includes("requests_waiting 1"),
    ).toBe(true);
    const second = await fetch(poll);
    expect([second.status, second.headers.get("retry-after"), await codeOf(second)]).toEqual([
      503,
      "1",
      "too_many_waiting",
    ]);
    const append = await fetch(`${small.url}/v1/stream/s`, {
      method: "POST",
      headers: octets,
      body: "x",
    });
    expect([append.status, await codeOf(append)]).toEqual([503, "too_many_waiting"]);
    expect((await first).status).toBe(204);
    expect(
      (await fetch(`${small.url}/v1/stream/s`, { method: "POST", headers: octets, body: "x" }))
        .status,
    ).toBe(204);
  } finally {
    await small.close();
  }
});
