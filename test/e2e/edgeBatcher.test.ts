import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { EdgeClient, type EdgeCounters } from "./edgeClient.ts";
import { FrameOrigin } from "./frameOrigin.ts";
import { startEdge, type EdgeProcess } from "./harness.ts";

/**
 * The batcher among real requests of one isolate, each in a context of its own, over real sockets. Not in the Worker's own
 * test project: its runner turns off the runtime's handling of promises that another request resolves, on which the
 * batcher rests.
 */
const origin = new FrameOrigin();
let edge: EdgeProcess;
let client: EdgeClient;

beforeAll(async () => {
  edge = await startEdge({ originUrl: await origin.listen() });
  client = new EdgeClient(edge.url, 200);
});
beforeEach(() => {
  origin.delayMs = 0;
});
afterAll(async () => {
  client.close();
  await edge.stop();
  await origin.close();
});

async function counters(): Promise<EdgeCounters> {
  const { body } = await client.send("/readyz", { method: "GET" });
  return (JSON.parse(body) as { edge: EdgeCounters }).edge;
}

test("200 concurrent appends, five rounds: each gets its own answer, and few frames carry them", async () => {
  origin.delayMs = 3;
  const before = await counters();
  const framesBefore = origin.frames.length;
  for (let round = 0; round < 5; round++) {
    const answers = await Promise.all(
      Array.from({ length: 200 }, async (_, i) => {
        const { status, headers } = await client.send(`/v1/stream/c/${i % 10}`, {
          body: `${round}:${i}`,
        });
        return { stream: i % 10, status, offset: Number(headers["stream-next-offset"]) };
      }),
    );
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([204]));
    for (let stream = 0; stream < 10; stream++) {
      const offsets = answers.filter((each) => each.stream === stream).map((each) => each.offset);
      const expected = Array.from({ length: 20 }, (_, i) => round * 20 + i + 1);
      expect(offsets.toSorted((a, b) => a - b)).toEqual(expected);
    }
  }
  const frames = origin.frames.slice(framesBefore);
  expect(frames.reduce((sum, frame) => sum + frame.length, 0)).toBe(1000);
  expect(frames.length).toBeLessThan(200);
  const after = await counters();
  expect(after.pendingBytes).toBe(0);
  expect(after.lanes["origin"]?.requests).toBe((before.lanes["origin"]?.requests ?? 0) + 1000);
  expect(after.lanes["origin"]?.flights).toBe(
    (before.lanes["origin"]?.flights ?? 0) + frames.length,
  );
});

test("an append that finds nothing in flight goes at once: sequential appends are one frame each", async () => {
  const framesBefore = origin.frames.length;
  for (let i = 0; i < 20; i++) {
    expect((await client.send("/v1/stream/s/1", { body: `${i}` })).status).toBe(204);
  }
  expect(origin.frames.slice(framesBefore).map((frame) => frame.length)).toEqual(Array(20).fill(1));
  expect(origin.applied.get("s/1")).toEqual(Array.from({ length: 20 }, (_, i) => `${i}`));
});

test("requests of one frame each get their own status: a refusal harms no neighbour", async () => {
  origin.delayMs = 20;
  const framesBefore = origin.frames.length;
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, i) =>
      client.send(i % 4 === 0 ? "/v1/stream/refuse/x" : `/v1/stream/own/${i}`, { body: `${i}` }),
    ),
  );
  expect(answers.map((answer) => answer.status)).toEqual(
    answers.map((_, i) => (i % 4 === 0 ? 409 : 204)),
  );
  expect(JSON.parse(answers[0]?.body ?? "")).toMatchObject({ code: "stream_closed", status: 409 });
  expect(answers[0]?.headers["stream-closed"]).toBe("true");
  expect(origin.frames.length - framesBefore).toBeLessThan(10);
});

test("F10 30 % of 200 requests abort, five rounds, both targets: no 500, nothing stuck, no acknowledged record lost", async () => {
  origin.delayMs = 5;
  const acknowledged: string[] = [];
  for (let round = 0; round < 5; round++) {
    const answers = await Promise.all(
      Array.from({ length: 200 }, async (_, i) => {
        const aborts = i % 10 < 3 ? { abortAfterMs: (i * 7) % 40 } : {};
        const record = `${round}:${i}`;
        const path = i % 2 === 0 ? `/v1/stream/f/${i % 8}` : `/v1/stream/f/${i % 8}?ack=edge`;
        return { i, record, ...(await client.send(path, { body: record, ...aborts })) };
      }),
    );
    for (const { i, status, record } of answers) {
      const success = i % 2 === 0 ? 204 : 202;
      expect(i % 10 < 3 ? [0, success] : [success], `request ${i}`).toContain(status);
      if (status === 204) {
        acknowledged.push(record);
      }
    }
  }
  const applied = [...origin.applied.values()].flat();
  expect(acknowledged.filter((record) => !applied.includes(record))).toEqual([]);
  await expect
    .poll(async () => {
      const { pendingBytes, lanes } = await counters();
      const open = Object.values(lanes).filter((lane) => lane.queued + lane.inFlight > 0).length;
      return { pendingBytes, open };
    })
    .toEqual({ pendingBytes: 0, open: 0 });
  for (const lane of Object.values((await counters()).lanes)) {
    expect(lane).toMatchObject({ lostFlights: 0, abandoned: 0 });
    expect(lane.flownRequests).toBe(lane.requests);
  }
  // The runtime warns when a promise is followed across requests, and names requests that hang.
  expect(edge.log()).not.toMatch(/different request|will never generate a response|hung|Uncaught/i);
});
