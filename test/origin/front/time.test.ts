import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ManualClock } from "../manualClock.ts";
import { eventually } from "../gateway/eventually.ts";
import { startFront, type FrontUnderTest } from "./frontUnderTest.ts";
import { Peer } from "./peer.ts";

let clock: ManualClock;
let under: FrontUnderTest;
let peer: Peer;
beforeEach(async () => {
  clock = new ManualClock();
  under = await startFront(
    { headersTimeoutMs: 1000, requestTimeoutMs: 2000, keepAliveTimeoutMs: 3000 },
    { clock },
  );
  peer = await Peer.open(under.port);
  // The server has it once its timer is armed.
  await eventually(() => clock.armed.size).toBe(1);
});
afterEach(async () => {
  peer.destroy();
  const closed = under.close();
  clock.advance(1000);
  await closed;
});

const post = (body: string): string =>
  `POST /v1/stream/s HTTP/1.1\r\nHost: h\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

describe("a connection is cut", () => {
  test("that sends nothing from its first moment on, with 408", async () => {
    clock.advance(999);
    expect(peer.closed).toBe(false);
    clock.advance(1);
    await eventually(() => peer.closed).toBe(true);
    expect(peer.statuses).toEqual(["408"]);
    expect(peer.text).toContain("connection: close\r\n");
    expect(peer.text).toContain('"code":"request_timeout"');
  });

  test("whose body does not come to its end, with 408", async () => {
    await peer.send(post("0123456789").slice(0, -1));
    await eventually(() => under.handler.held.held).toBe(9);
    clock.advance(1000);
    clock.advance(999);
    expect(under.handler.held.held).toBe(9);
    clock.advance(1);
    await eventually(() => peer.closed).toBe(true);
    expect(peer.statuses).toEqual(["408"]);
    expect(under.handler.seen.map((seen) => seen.outcome)).toEqual(["aborted"]);
    expect(under.handler.held.held).toBe(0);
  });

  test("whose body drips, all the same", async () => {
    const text = post("0123456789");
    await peer.send(text.slice(0, -5));
    for (let held = 5; held < 9; held++) {
      await eventually(() => under.handler.held.held).toBe(held);
      clock.advance(500);
      await peer.send("x");
    }
    await eventually(() => peer.closed).toBe(true);
    expect(peer.statuses).toEqual(["408"]);
  });

  test("whose refused body does not come to its end, without a second answer", async () => {
    under.handler.refusing = true;
    await peer.send(post("0123456789").slice(0, -1));
    await eventually(() => peer.statuses).toEqual(["401"]);
    clock.advance(1999);
    expect(peer.ended).toBe(false);
    clock.advance(1);
    await eventually(() => peer.closed).toBe(true);
    expect(peer.statuses).toEqual(["401"]);
  });

  test("that is idle after an answer, without a word", async () => {
    await peer.send(post("abc"));
    await eventually(() => peer.statuses).toEqual(["200"]);
    clock.advance(2999);
    expect(peer.ended).toBe(false);
    clock.advance(1);
    await eventually(() => peer.closed).toBe(true);
    expect(peer.statuses).toEqual(["200"]);
  });

  test("whose last answer is not read, five seconds after it", async () => {
    under.handler.answerBody = () => "x".repeat(20_000_000);
    peer.socket.pause();
    await peer.send(post("abc"));
    await eventually(() => under.handler.seen.length).toBe(1);
    clock.advance(3000);
    clock.advance(4999);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(under.handler.seen[0]?.outcome).toBe("whole");
    clock.advance(1);
    peer.socket.resume();
    await eventually(() => peer.closed).toBe(true);
    expect(peer.text.length).toBeLessThan(20_000_000);
  });
});

describe("a connection is not cut", () => {
  test("while its answer is due, however long that takes", async () => {
    under.handler.holding = true;
    await peer.send(post("abc"));
    await eventually(() => under.handler.due).toBe(1);
    clock.advance(1_000_000);
    expect(peer.ended).toBe(false);
    under.handler.release();
    await eventually(() => peer.statuses).toEqual(["200"]);
  });

  test("while its body, which came whole at last, is being judged", async () => {
    under.handler.holding = true;
    const text = post("0123456789");
    await peer.send(text.slice(0, -1));
    await eventually(() => under.handler.held.held).toBe(9);
    await peer.send("x");
    await eventually(() => under.handler.due).toBe(1);
    clock.advance(1_000_000);
    expect(peer.ended).toBe(false);
    under.handler.release();
    await eventually(() => peer.statuses).toEqual(["200"]);
  });

  test("as long as it goes on", async () => {
    for (let i = 1; i <= 5; i++) {
      await peer.send(post("abc"));
      await eventually(() => peer.statuses).toHaveLength(i);
      clock.advance(2999);
    }
    expect(peer.ended).toBe(false);
  });
});

test("one timer for all connections, none when there are none", async () => {
  const others = await Promise.all(Array.from({ length: 10 }, () => Peer.open(under.port)));
  await others[0]?.send(post("abc"));
  await eventually(() => under.handler.seen.length).toBe(1);
  expect(clock.armed.size).toBe(1);
  [peer, ...others].forEach((each) => each.destroy());
  await new Promise((resolve) => setTimeout(resolve, 50));
  clock.advance(1000);
  expect(clock.armed.size).toBe(0);
});
