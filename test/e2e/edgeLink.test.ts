import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { limits } from "../../shared/limits.ts";
import { EdgeClient, type Reply } from "./edgeClient.ts";
import { FrameOrigin } from "./frameOrigin.ts";
import { startEdge, type EdgeProcess } from "./harness.ts";

/** The Worker between real sockets: what it makes of a link that breaks, and of clients that misbehave. */
let origin: FrameOrigin;
let originPort: number;
let edge: EdgeProcess;
let client: EdgeClient;

beforeAll(async () => {
  origin = new FrameOrigin();
  const originUrl = await origin.listen();
  originPort = Number(new URL(originUrl).port);
  edge = await startEdge({ originUrl });
  client = new EdgeClient(edge.url);
});
beforeEach(() => {
  origin.other = (_request, response) => response.end("{}");
  origin.fault = "none";
  origin.delayMs = 0;
});
afterAll(async () => {
  client.close();
  await edge.stop();
  await origin.close();
});

const codeOf = ({ status, body }: Reply): [number, string] => [
  status,
  body === "" ? "" : (JSON.parse(body) as { code: string }).code,
];
const append = (stream: string, body: string): Promise<Reply> =>
  client.send(`/v1/stream/${stream}`, { body });

test("F1 a frame cut before, after and in the middle of its reply: outcome_unknown for its requests only", async () => {
  for (const fault of ["cutBeforeReading", "cutAfterApplying", "truncateReply"] as const) {
    expect((await append(`link/${fault}`, "before")).status).toBe(204);
    origin.fault = fault;
    const broken = await append(`link/${fault}`, "broken");
    expect([fault, ...codeOf(broken)]).toEqual([fault, 503, "outcome_unknown"]);
    expect(broken.headers["retry-after"]).toBe("1");
    origin.fault = "none";
    expect((await append(`link/${fault}`, "after")).status).toBe(204);
  }
  // Never sent a second time by the edge itself: that it was not stored is not known.
  expect(origin.applied.get("link/cutBeforeReading")).toEqual(["before", "after"]);
  expect(origin.applied.get("link/cutAfterApplying")).toEqual(["before", "broken", "after"]);
  expect(origin.applied.get("link/truncateReply")).toEqual(["before", "broken", "after"]);
});

test("F1 no origin: 503 with Retry-After for writes and reads, and back as soon as it is", async () => {
  expect((await append("down", "1")).status).toBe(204);
  await origin.close();
  // The first may meet the dying connection; from then on the edge asks before it sends.
  expect((await append("down", "2")).status).toBe(503);
  for (const [path, method] of [
    ["/v1/stream/down", "POST"],
    ["/v1/stream/down", "GET"],
    ["/v1/stream/down", "DELETE"],
    ["/v1/ingest/down?ack=origin", "POST"],
  ] as const) {
    const reply = await client.send(path, { method, ...(method === "POST" ? { body: "3" } : {}) });
    expect([method, ...codeOf(reply)]).toEqual([method, 503, "origin_unreachable"]);
    expect(reply.headers["retry-after"]).toBe("1");
  }
  expect((await client.send("/v1/ingest/down", { body: "[4]" })).status).toBe(202);
  expect((await client.send("/livez", { method: "GET" })).status).toBe(200);
  const later = new FrameOrigin();
  await later.listen(originPort);
  origin = later;
  expect((await append("down", "5")).status).toBe(204);
  expect(later.applied.get("down")).toEqual(["5"]);
});

test("F13 an origin that stalls costs its requests their time and no more: outcome_unknown, then all is well", async () => {
  origin.fault = "stall";
  const started = performance.now();
  const flown = append("stall", "1");
  await new Promise((resolve) => setTimeout(resolve, 100));
  const queued = Promise.all(["2", "3"].map((body) => append("stall", body)));
  expect((await client.send("/v1/ingest/stall/edge", { body: "[1]" })).status).toBe(202);
  expect(performance.now() - started).toBeLessThan(5000);
  expect(codeOf(await flown)).toEqual([503, "outcome_unknown"]);
  expect(performance.now() - started).toBeLessThan(limits.batchWaitMsMax + 1000);
  origin.fault = "none";
  for (const reply of await queued) {
    expect([204, 503]).toContain(reply.status);
  }
  expect((await append("stall", "4")).status).toBe(204);
});

test("SSE comes through event by event, and a reader that leaves ends the origin's response", async () => {
  const written: number[] = [];
  let left = 0;
  origin.other = (_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    const timer = setInterval(() => {
      written.push(performance.now());
      response.write(`data: ${written.length}\n\n`);
    }, 50);
    response.on("close", () => {
      clearInterval(timer);
      left = performance.now();
    });
  };
  const outgoing = get(`${edge.url}/v1/stream/sse?live=sse&offset=-1`, { agent: false });
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  expect(incoming.headers["content-type"]).toBe("text/event-stream");
  const delays: number[] = [];
  incoming.on("error", () => {});
  incoming.on("data", (chunk: Buffer) => {
    const n = Number(/data: (\d+)/.exec(chunk.toString())?.[1]);
    delays.push(performance.now() - (written[n - 1] ?? 0));
  });
  await expect.poll(() => delays.length, { timeout: 5000 }).toBeGreaterThan(5);
  expect(delays.toSorted((a, b) => a - b)[Math.floor(delays.length / 2)]).toBeLessThan(200);
  outgoing.on("error", () => {});
  outgoing.destroy();
  await expect.poll(() => left, { timeout: 3000 }).toBeGreaterThan(0);
});

/** Sends bytes as they are and returns the status of the answer; "" when there was none. */
async function raw(text: string): Promise<string> {
  const { hostname, port } = new URL(edge.url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  let received = "";
  const answered = new Promise<void>((resolve) => {
    socket.on("data", (chunk: Buffer) => {
      received += chunk.toString();
      if (received.includes("\r\n\r\n")) {
        resolve();
      }
    });
    socket.on("close", () => resolve());
  });
  socket.write(text);
  await answered;
  socket.destroy();
  return /^HTTP\/1\.1 (\d{3})/.exec(received)?.[1] ?? "";
}

test("F10 senders that go away in the middle of a body leave nothing behind", async () => {
  const { hostname, port } = new URL(edge.url);
  const partial = (framing: string): string =>
    `POST /v1/stream/half HTTP/1.1\r\nHost: edge.test\r\nContent-Type: text/plain\r\n${framing}`;
  for (let i = 0; i < 20; i++) {
    const socket = connect(Number(port), hostname);
    socket.on("error", () => {});
    const framing =
      i % 2 === 0
        ? "Content-Length: 100\r\n\r\nhalf"
        : "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n";
    socket.write(partial(framing), () => setTimeout(() => socket.destroy(), 20));
  }
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect((await append("half", "whole")).status).toBe(204);
  expect(origin.applied.get("half")).toEqual(["whole"]);
  const { body } = await client.send("/readyz", { method: "GET" });
  expect(JSON.parse(body)).toMatchObject({ edge: { pendingBytes: 0 } });
  expect(edge.log()).not.toMatch(/unexpected error/i);
});

test("I3 malformed and oversized requests over raw sockets get a 4xx, and the edge stays up", async () => {
  const post = "POST /v1/stream/raw HTTP/1.1\r\nHost: edge.test\r\nContent-Type: text/plain\r\n";
  expect(await raw(`${post}Content-Length: NaN\r\n\r\nx`)).toBe("400");
  expect(await raw(`${post}Content-Length: -1\r\n\r\nx`)).toBe("400");
  expect(await raw(`${post}Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n`)).toBe("204");
  expect(await raw("GET /v1/stream/%00 HTTP/1.1\r\nHost: edge.test\r\n\r\n")).toBe("400");
  expect(await raw("GET /v1/stream/a%zz HTTP/1.1\r\nHost: edge.test\r\n\r\n")).toBe("400");
  expect(origin.applied.get("raw")).toEqual(["x"]);
  const over = Buffer.alloc(limits.bodyBytesMax + 1, 120);
  expect(codeOf(await client.send("/v1/stream/raw", { body: over }))).toEqual([
    413,
    "body_too_large",
  ]);
  const chunked = { "content-type": "text/plain", "transfer-encoding": "chunked" };
  const streamed = await client.send("/v1/stream/raw", { body: over, headers: chunked });
  expect(codeOf(streamed)).toEqual([413, "body_too_large"]);
  const far = Buffer.alloc(5 * limits.bodyBytesMax, 120);
  expect(codeOf(await client.send("/v1/ingest/raw", { body: far, headers: chunked }))).toEqual([
    413,
    "body_too_large",
  ]);
  expect((await append("raw", "y")).status).toBe(204);
  expect(edge.log()).not.toMatch(/unexpected error|Uncaught/i);
});
