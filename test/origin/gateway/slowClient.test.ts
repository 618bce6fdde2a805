import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startGateway, type GatewayUnderTest } from "./gatewayUnderTest.ts";
import { eventually } from "./eventually.ts";

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await startGateway({
    headersTimeoutMs: 300,
    requestTimeoutMs: 600,
    timeoutCheckMs: 100,
    keepAliveTimeoutMs: 300,
    maxConnections: 20,
  });
  await fetch(`${gateway.url}/v1/stream/s`, {
    method: "PUT",
    headers: { "content-type": "text/plain" },
  });
});
afterAll(() => gateway.close());

/** What the server sent until it closed the connection, and after how long. */
function untilClosed(socket: Socket): Promise<{ text: string; ms: number }> {
  const started = performance.now();
  return new Promise((resolve) => {
    let text = "";
    socket.on("data", (chunk) => (text += chunk.toString("latin1")));
    socket.on("error", () => {});
    socket.on("close", () => resolve({ text, ms: performance.now() - started }));
  });
}

const head =
  "POST /v1/stream/s HTTP/1.1\r\nHost: h\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\n";

test("a header that does not come is timed out with a code", async () => {
  const socket = connect(gateway.port, "127.0.0.1");
  socket.write("POST /v1/str");
  const { text, ms } = await untilClosed(socket);
  expect(text).toMatch(/^HTTP\/1\.1 408 /);
  expect(text).toContain('"code":"request_timeout"');
  expect(ms).toBeLessThan(2000);
});

test("a body that does not come is timed out, its place freed, nothing stored", async () => {
  const socket = connect(gateway.port, "127.0.0.1");
  socket.write(`${head}12345`);
  await eventually(async () =>
    (await (await fetch(`${gateway.url}/metrics`)).text()).includes("body_held_bytes 5\n"),
  ).toBe(true);
  const { text } = await untilClosed(socket);
  expect(text).toMatch(/^HTTP\/1\.1 408 /);
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  expect(metrics).toContain("forebay_body_held_bytes 0\n");
  expect(metrics).toContain("forebay_requests_waiting 0\n");
  expect(await (await fetch(`${gateway.url}/v1/stream/s`)).text()).toBe("");
});

test("a body that drips is timed out all the same", async () => {
  const socket = connect(gateway.port, "127.0.0.1");
  socket.write(head);
  const drip = setInterval(() => socket.write("x"), 200);
  const { text } = await untilClosed(socket);
  clearInterval(drip);
  expect(text).toMatch(/^HTTP\/1\.1 408 /);
});

test("a client that leaves in the middle of its body stores nothing and frees its place", async () => {
  const socket = connect(gateway.port, "127.0.0.1");
  socket.write(`${head}123`);
  await eventually(async () =>
    (await (await fetch(`${gateway.url}/metrics`)).text()).includes("body_held_bytes 3\n"),
  ).toBe(true);
  socket.destroy();
  await eventually(async () =>
    (await (await fetch(`${gateway.url}/metrics`)).text()).includes("body_held_bytes 0\n"),
  ).toBe(true);
  expect(await (await fetch(`${gateway.url}/v1/stream/s`)).text()).toBe("");
});

test("a body in small pieces is one append", async () => {
  const socket = connect(gateway.port, "127.0.0.1");
  socket.setNoDelay(true);
  socket.write(head);
  for (const piece of ["01", "234", "5", "6789"]) {
    socket.write(piece);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await eventually(async () => (await fetch(`${gateway.url}/v1/stream/s`)).text()).toBe(
    "0123456789",
  );
  const tail = await fetch(`${gateway.url}/v1/stream/s`, { method: "HEAD" });
  expect(tail.headers.get("stream-next-offset")).toBe("0000000000000001_000000000000000a");
  socket.destroy();
});

test("an idle connection is closed", async () => {
  const socket = connect(gateway.port, "127.0.0.1");
  socket.write("GET /livez HTTP/1.1\r\nHost: h\r\n\r\n");
  const { text } = await untilClosed(socket);
  expect(text).toMatch(/^HTTP\/1\.1 200 /);
});

test("connections beyond the limit are not taken, and the others go on", async () => {
  const sockets = Array.from({ length: 40 }, () => connect(gateway.port, "127.0.0.1"));
  const dropped = sockets.map((socket) => untilClosed(socket));
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(sockets.filter((socket) => socket.destroyed).length).toBeGreaterThanOrEqual(20);
  sockets.forEach((socket) => socket.destroy());
  await Promise.all(dropped);
  await eventually(
    async () => (await fetch(`${gateway.url}/livez`).catch(() => undefined))?.status,
  ).toBe(200);
});

test("pipelined appends are applied and answered in order", async () => {
  await fetch(`${gateway.url}/v1/stream/pipe`, {
    method: "PUT",
    headers: { "content-type": "text/plain" },
  });
  const socket = connect(gateway.port, "127.0.0.1");
  const one = (body: string, last: boolean): string =>
    `POST /v1/stream/pipe HTTP/1.1\r\nHost: h\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\n${last ? "Connection: close\r\n" : ""}\r\n${body}`;
  socket.write(Array.from({ length: 30 }, (_, i) => one(String(i % 10), i === 29)).join(""));
  const { text } = await untilClosed(socket);
  expect([...text.matchAll(/HTTP\/1\.1 204/g)]).toHaveLength(30);
  const offsets = [...text.matchAll(/stream-next-offset: (\S+)/g)].map((match) => String(match[1]));
  expect(offsets).toEqual(offsets.toSorted((a, b) => (a < b ? -1 : 1)));
  expect(await (await fetch(`${gateway.url}/v1/stream/pipe`)).text()).toBe("0123456789".repeat(3));
});

test("garbage after an append is refused behind the answer of the append", async () => {
  gateway.journal.held = true;
  const socket = connect(gateway.port, "127.0.0.1");
  socket.write(`${head}0123456789garbage\r\n\r\n`);
  const whole = untilClosed(socket);
  await eventually(async () => gateway.journal.reserved).toBeGreaterThan(gateway.journal.durable);
  gateway.journal.held = false;
  gateway.journal.commit();
  const { text } = await whole;
  expect([...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => match[1])).toEqual(["204", "400"]);
});

test("garbage after a request that node:http reads is never taken for its answer", async () => {
  gateway.journal.held = true;
  const socket = connect(gateway.port, "127.0.0.1");
  socket.write(`${head.replace("Host", "TE: trailers\r\nHost")}0123456789garbage\r\n\r\n`);
  const { text } = await untilClosed(socket);
  gateway.journal.held = false;
  gateway.journal.commit();
  expect(text).toBe("");
});
