import { createServer, connect, type AddressInfo, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FaultProxy, storm, type Fault } from "./faultProxy.ts";
import { seededRandom } from "../origin/seededRandom.ts";

/** The proxy's faults, each against a server that sends back what it gets. */
let server: Server;
let proxy: FaultProxy;
/** What the server got, per connection, and how it ended there. */
let got: { bytes: string; ended: boolean }[];

beforeEach(async () => {
  got = [];
  server = createServer({ allowHalfOpen: true }, (socket) => {
    const mine = { bytes: "", ended: false };
    got.push(mine);
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      mine.bytes += chunk.toString();
      socket.write(chunk);
    });
    socket.on("end", () => {
      mine.ended = true;
      socket.end("bye");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  proxy = new FaultProxy((server.address() as AddressInfo).port);
  await proxy.listen();
});
afterEach(async () => {
  await proxy.close();
  server.close();
});

/** Sends `text`, ends if told to, and says what came back within `ms` and how it went. */
async function talk(fault: Fault, text: string, { end = false, ms = 300 } = {}) {
  proxy.plan = () => fault;
  const startedAt = performance.now();
  const heard = { text: "", end: "open", firstMs: 0 };
  const socket: Socket = connect({ port: Number(new URL(proxy.url).port), host: "127.0.0.1" });
  socket.on("data", (chunk) => {
    heard.firstMs ||= performance.now() - startedAt;
    heard.text += chunk.toString();
  });
  const over = new Promise<void>((resolve) => {
    socket.on("error", () => {
      heard.end = "reset";
      resolve();
    });
    socket.on("end", () => {
      heard.end = "end";
      resolve();
    });
    setTimeout(resolve, ms);
  });
  socket.write(text);
  if (end) {
    socket.end();
  }
  await over;
  socket.destroy();
  return heard;
}

test("without a fault bytes go both ways and ends stay orderly", async () => {
  expect(await talk({ kind: "none" }, "hello", { end: true })).toMatchObject({
    text: "hellobye",
    end: "end",
  });
  expect(got).toEqual([{ bytes: "hello", ended: true }]);
});

test("latency and throttle delay, and lose nothing", async () => {
  const slow = await talk({ kind: "latency", ms: 50 }, "hello", { end: true });
  expect(slow).toMatchObject({ text: "hellobye", end: "end" });
  expect(slow.firstMs).toBeGreaterThanOrEqual(100);
  const thin = await talk({ kind: "throttle", bytesPerSecond: 10 }, "1234", {
    ms: 2000,
    end: true,
  });
  expect(thin.text).toBe("1234bye");
  expect(thin.firstMs).toBeGreaterThanOrEqual(800);
});

test("cut resets both ends after so many bytes", async () => {
  expect((await talk({ kind: "cut", side: "request", after: 3 }, "hello")).end).toBe("reset");
  expect(got[0]?.bytes).toBe("hel");
  const reply = await talk({ kind: "cut", side: "reply", after: 2 }, "hello");
  expect(reply.end).toBe("reset");
  expect("he".startsWith(reply.text)).toBe(true);
  expect(got[1]?.bytes).toBe("hello");
});

test("halfClose ends one direction in order and leaves the other open", async () => {
  const heard = await talk({ kind: "halfClose", side: "request", after: 3 }, "hello");
  expect(got[0]).toEqual({ bytes: "hel", ended: true });
  expect(heard).toMatchObject({ text: "helbye", end: "end" });
});

test("truncate ends the reply in order, in its middle", async () => {
  const heard = await talk({ kind: "truncate", side: "reply", after: 2 }, "hello");
  expect(heard).toMatchObject({ text: "he", end: "end" });
});

test("blackhole takes bytes and gives none, then resets", async () => {
  const hole: Fault = { kind: "blackhole", side: "request", after: 3, ms: 200 };
  expect(await talk(hole, "hello", { ms: 100 })).toMatchObject({ end: "open" });
  expect(got[0]?.bytes).toBe("hel");
  expect((await talk(hole, "hello", { ms: 1000 })).end).toBe("reset");
});

test("stall pauses one direction, and everything comes after it", async () => {
  const stall: Fault = { kind: "stall", side: "reply", after: 2, ms: 150 };
  expect(await talk(stall, "hello", { ms: 100 })).toMatchObject({ text: "he", end: "open" });
  expect(await talk(stall, "hello", { ms: 600 })).toMatchObject({ text: "hello" });
});

test("duplicate sends all of it once more when the connection has ended", async () => {
  await talk({ kind: "duplicate" }, "hello", { end: true });
  await expect.poll(() => got.map(({ bytes }) => bytes)).toEqual(["hello", "hello"]);
});

test("the same seed draws the same storm, with every fault in it", () => {
  const draw = (): Fault[] => {
    const plan = storm(seededRandom(5).next, 1000);
    return Array.from({ length: 200 }, plan);
  };
  expect(draw()).toEqual(draw());
  expect(new Set(draw().map(({ kind }) => kind)).size).toBe(9);
});
