import { expect, test } from "vitest";
import { ManualClock } from "../manualClock.ts";
import { eventually } from "../gateway/eventually.ts";
import { startFront } from "./frontUnderTest.ts";
import { Peer } from "./peer.ts";

const post = (body: string): string =>
  `POST /v1/stream/s HTTP/1.1\r\nHost: h\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

test("closing ends what is idle, lets an answer be given and a body come, and then is done", async () => {
  const under = await startFront();
  const [fresh, idle, due, receiving] = await Promise.all(
    Array.from({ length: 4 }, () => Peer.open(under.port)),
  );
  if (fresh === undefined || idle === undefined || due === undefined || receiving === undefined) {
    throw new Error("four were opened");
  }
  await idle.send(post("a"));
  await eventually(() => idle.statuses).toEqual(["200"]);
  under.handler.holding = true;
  await due.send(post("b"));
  await eventually(() => under.handler.due).toBe(1);
  await receiving.send(post("0123456789").slice(0, -1));
  await eventually(() => under.handler.held.held).toBe(9);

  const closed = under.close(5000);
  await eventually(() => [fresh.closed, idle.closed]).toEqual([true, true]);
  expect([due.ended, receiving.ended]).toEqual([false, false]);
  under.handler.release();
  await eventually(() => due.closed).toBe(true);
  expect(due.statuses).toEqual(["200"]);
  expect(due.text).not.toContain("keep-alive");
  under.handler.holding = false;
  await receiving.send("x");
  await eventually(() => receiving.closed).toBe(true);
  expect(receiving.statuses).toEqual(["200"]);
  await closed;
  expect(under.cuts()).toBe(0);
  await expect(Peer.open(under.port)).rejects.toThrow("ECONNREFUSED");
});

test("what is open at the deadline is cut, and an answer that comes later is dropped", async () => {
  const clock = new ManualClock();
  const under = await startFront({}, { clock });
  under.handler.holding = true;
  const [due, receiving] = [await Peer.open(under.port), await Peer.open(under.port)];
  await due.send(post("b"));
  await eventually(() => under.handler.due).toBe(1);
  await receiving.send(post("0123456789").slice(0, -1));
  await eventually(() => under.handler.held.held).toBe(9);
  const closed = under.close(1000);
  clock.advance(1000);
  await closed;
  expect(under.cuts()).toBe(1);
  await eventually(() => [due.closed, receiving.closed]).toEqual([true, true]);
  under.handler.release();
  expect(under.handler.held.held).toBe(0);
  expect([due.text, receiving.text]).toEqual(["", ""]);
  expect(clock.armed.size).toBe(0);
});

test("connections beyond the maximum are not taken, whoever reads the others", async () => {
  const under = await startFront({ maxConnections: 2 });
  const [recognised, http] = [await Peer.open(under.port), await Peer.open(under.port)];
  await recognised.send(post("a"));
  await http.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  await eventually(() => [recognised.statuses, http.statuses]).toEqual([["200"], ["200"]]);
  const beyond = await Peer.open(under.port);
  await eventually(() => beyond.closed).toBe(true);
  expect(beyond.text).toBe("");
  http.destroy();
  await eventually(async () => {
    const next = await Peer.open(under.port);
    await next.send(post("b"));
    await new Promise((resolve) => setTimeout(resolve, 20));
    const { statuses } = next;
    next.destroy();
    return statuses;
  }).toEqual(["200"]);
  recognised.destroy();
  await under.close();
});
