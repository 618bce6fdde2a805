import { runInDurableObject } from "cloudflare:test";
import { beforeEach, expect, test } from "vitest";
import type { Outbox } from "../../../edge/outbox/mod.ts";
import { LinkOrigin } from "./linkOrigin.ts";
import {
  ageStrikes,
  again,
  append,
  checkedStatus,
  drained,
  freshOutbox,
  request,
  untilStatus,
  type Stub,
} from "./outboxUnderTest.ts";

let origin: LinkOrigin;
beforeEach(() => {
  origin = new LinkOrigin();
  origin.install();
});

/** An outbox that has given up the second of its three frames, and the position of that one's request. */
async function withDeadFrame(): Promise<{ stub: Stub; position: string }> {
  const stub = freshOutbox();
  origin.poison = { stream: "poison", code: "frame_spans_shards" };
  await append(stub, request({ records: ["0"] }));
  const bytes = new Uint8Array([0xff, 0xfe]);
  const producer = { id: "p", epoch: 0, seq: 0 };
  const dead = request({ stream: "poison", records: ["a", bytes], producer });
  const { epoch } = await append(stub, dead);
  await append(stub, request({ records: ["1"] }));
  const { buffer } = await untilStatus(stub, ({ strikes }) => strikes >= 2);
  await ageStrikes(stub);
  await drained(again(stub));
  origin.poison = null;
  return { stub: again(stub), position: `${buffer}.${epoch}.2.0` };
}

test("a frame given up is listed, and shown with its records", async () => {
  const { stub } = await withDeadFrame();
  const about = { row: 2, fsn: 2, records: 2, reason: "frame_spans_shards" };
  expect(await stub.dead(0)).toMatchObject([about]);
  expect(await stub.dead(2)).toEqual([]);
  const letter = await stub.deadLetter(2);
  expect(letter).toMatchObject({ kind: "dead", readable: true, ...about });
  expect(letter.kind === "dead" ? letter.requests : []).toMatchObject([
    { stream: "poison", producer: { id: "p", epoch: 0, seq: 0 } },
  ]);
  expect(await stub.deadLetter(1)).toMatchObject({ kind: "refused", code: "not_found" });
});

test("F21 replayed it goes behind all others, once; its position names it again, and the ledger adds up", async () => {
  const { stub, position } = await withDeadFrame();
  expect(await stub.ack(position, 0)).toMatchObject({ kind: "refused", code: "frame_given_up" });
  origin.fault = "down";
  expect(await stub.replayDead(2)).toEqual({ kind: "replayed", fsn: 4 });
  expect(await stub.ack(position, 0)).toEqual({ kind: "state", received: false, durable: false });
  expect((await checkedStatus(stub)).ledger).toMatchObject({ inFrames: 2, dead: 0, accepted: 4 });
  const waiting = stub.ack(position, 20_000);
  origin.fault = "none";
  expect(await waiting).toEqual({ kind: "state", received: true, durable: true });
  expect((await drained(stub)).ledger).toMatchObject({ acknowledged: 4, dead: 0, accepted: 4 });
  expect(origin.applied.at(-1)).toMatchObject({
    fsn: 4,
    requests: [{ stream: "poison", producer: { id: "p", epoch: 0, seq: 0 } }],
  });
  expect(await stub.dead(0)).toEqual([]);
  expect(await stub.replayDead(2)).toMatchObject({ kind: "refused", code: "not_found" });
}, 30_000);

test("one whose bytes are no frame is shown as that, kept, and not replayed", async () => {
  const { stub } = await withDeadFrame();
  await runInDurableObject(stub, (_instance: Outbox, { storage }) => {
    storage.sql.exec("UPDATE dead SET bytes = x'00112233'");
  });
  expect(await stub.deadLetter(2)).toMatchObject({ readable: false, requests: [] });
  expect(await stub.replayDead(2)).toMatchObject({ kind: "refused", code: "bad_frame" });
  expect(await stub.dead(0)).toHaveLength(1);
}, 30_000);

test("an outbox never used answers all of it, and stays unused", async () => {
  const stub = freshOutbox();
  expect(await stub.dead(0)).toEqual([]);
  expect(await stub.replayDead(1)).toMatchObject({ code: "not_found" });
  await stub.drain();
  const tables = await runInDurableObject(stub, (_instance: Outbox, { storage }) =>
    storage.sql.exec("SELECT name FROM sqlite_master WHERE name = 'meta'").toArray(),
  );
  expect(tables).toEqual([]);
});

test("F14 a frame that waits for more than a minute degrades health, refuses no write, and is named", async () => {
  const stub = freshOutbox();
  origin.fault = "down";
  await append(stub, request());
  expect((await checkedStatus(stub)).health).toEqual({ state: "ok", reason: null });
  await untilStatus(stub, ({ attempts }) => attempts >= 2);
  await runInDurableObject(stub, (_instance: Outbox, { storage }) => {
    storage.sql.exec("UPDATE frames SET at = at - 61000");
  });
  const { health } = await checkedStatus(stub);
  expect(health.state).toBe("degraded");
  expect(health.reason).toMatch(/waited 61 s for the origin; the last error: Network connection/);
  expect((await append(stub, request())).answers).toMatchObject([{ kind: "accepted" }]);
  origin.fault = "none";
  expect((await drained(stub)).health).toEqual({ state: "ok", reason: null });
});

test("F2 asked to drain it does not wait for its backoff", async () => {
  const stub = freshOutbox();
  origin.fault = "down";
  await append(stub, request());
  await untilStatus(stub, ({ attempts }) => attempts >= 6);
  origin.fault = "none";
  const startedAt = Date.now();
  await stub.drain();
  while ((await stub.status()).frames > 0) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(Date.now() - startedAt).toBeLessThan(1000);
  }
}, 30_000);
