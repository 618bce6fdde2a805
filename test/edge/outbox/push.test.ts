import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { beforeEach, expect, test } from "vitest";
import { limits } from "../../../shared/limits.ts";
import { isVoid, LinkOrigin, type LinkFault } from "./linkOrigin.ts";
import {
  ageStrikes,
  again,
  alarmOf,
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

const numbered = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => `${from + i}`);

async function appendEach(stub: Stub, records: readonly string[]): Promise<void> {
  for (const record of records) {
    await append(stub, request({ records: [record] }));
  }
}

test.each<LinkFault>(["down", "dropReply", "truncate", "gibberish", "serverError"])(
  "F1 a link that is %s for a while: everything arrives exactly once, in order",
  async (fault) => {
    const stub = freshOutbox();
    await appendEach(stub, numbered(0, 3));
    await drained(stub);
    origin.fault = fault;
    await appendEach(stub, numbered(3, 5));
    const failing = await untilStatus(stub, ({ attempts }) => attempts >= 2);
    expect(failing.lastError).toMatch(/lost|messages?|502|answer/);
    expect(failing).toMatchObject({ frames: 5, oldestUnackedMs: expect.any(Number) });
    expect(await alarmOf(stub)).not.toBeNull();
    origin.fault = "none";
    const status = await drained(stub);
    expect(origin.records("s")).toEqual(numbered(0, 8));
    expect(status).toMatchObject({ acked: 8, attempts: 0, lastError: null });
    expect(status.link.failures).toBeGreaterThanOrEqual(2);
    expect(origin.inFlightMax).toBe(1);
  },
  20_000,
);

test("F1 seeded faults at random: each acknowledged record once, in order, and the ledger adds up all along", async () => {
  const stub = freshOutbox();
  let seed = 7;
  const dice = (n: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return (seed >>> 8) % n;
  };
  const faults: LinkFault[] = ["none", "none", "none", "down", "dropReply", "truncate"];
  let live = stub;
  const sent: string[] = [];
  for (let i = 0; i < 120; i++) {
    origin.fault = faults[dice(faults.length)] ?? "none";
    const records = numbered(sent.length, 1 + dice(3));
    sent.push(...records);
    await append(live, request({ records }));
    if (dice(15) === 0) {
      await evictDurableObject(live);
      live = again(live);
    }
    if (dice(4) === 0) {
      await checkedStatus(live);
    }
  }
  origin.fault = "none";
  const status = await drained(live);
  expect(origin.records("s")).toEqual(sent);
  expect(status.ledger).toMatchObject({ accepted: sent.length, acknowledged: sent.length });
}, 30_000);

test("F17 an answer that comes a byte at a time is applied once it is whole, at the first sending", async () => {
  const stub = freshOutbox();
  origin.fault = "dribble";
  await appendEach(stub, numbered(0, 5));
  const status = await drained(stub);
  expect(status).toMatchObject({ acked: 5, link: { failures: 0, framesReplayed: 0 } });
  expect(origin.records("s")).toEqual(numbered(0, 5));
});

test("F17 several acks in one answer, the strongest last or not: one trim to the strongest, none for another's", async () => {
  const stub = freshOutbox();
  origin.extraAcks = ({ buffer, epoch, durable }) => [
    { buffer: "other:1", epoch, durable: 99 },
    { buffer, epoch: "older", durable: 99 },
    { buffer, epoch, durable: durable - 1 },
  ];
  await appendEach(stub, numbered(0, 3));
  expect(await drained(stub)).toMatchObject({ acked: 3, link: { failures: 0 } });
  expect(origin.records("s")).toEqual(numbered(0, 3));
});

test("F2 after eviction the backlog drains by itself, without new traffic", async () => {
  const stub = freshOutbox();
  origin.fault = "down";
  await appendEach(stub, numbered(0, 4));
  const failing = await untilStatus(stub, ({ attempts }) => attempts >= 2);
  await evictDurableObject(stub);
  origin.fault = "none";
  // Nothing calls it: its alarm does.
  const deadline = Date.now() + 10_000;
  while (origin.records("s").length < 4 && Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(origin.records("s")).toEqual(numbered(0, 4));
  const status = await drained(again(stub));
  expect(status.constructions).toBe(2);
  expect(status.boot).toBeGreaterThan(failing.boot);
  expect(origin.hellos.map(({ boot }) => boot)).toEqual([status.boot]);
});

test("F2 a lost alarm is set anew by whatever wakes the object, and the backlog drains", async () => {
  const stub = freshOutbox();
  origin.fault = "down";
  await appendEach(stub, numbered(0, 3));
  await untilStatus(stub, ({ attempts }) => attempts >= 2);
  // Far off, so that it cannot be what drains.
  await runInDurableObject(stub, (_instance, { storage }) => storage.setAlarm(Date.now() + 1e9));
  await evictDurableObject(stub);
  await runInDurableObject(again(stub), (_instance, { storage }) => storage.deleteAlarm());
  await evictDurableObject(again(stub));
  expect(await alarmOf(again(stub))).not.toBeNull();
  origin.fault = "none";
  await evictDurableObject(again(stub));
  await drained(again(stub));
  expect(origin.records("s")).toEqual(numbered(0, 3));
});

test("F2 an overdue alarm finds nothing to do in an outbox that is empty, and never throws", async () => {
  const stub = freshOutbox();
  await append(stub, request());
  await drained(stub);
  await runInDurableObject(stub, (_instance, { storage }) => storage.setAlarm(Date.now() + 1e9));
  expect(await runDurableObjectAlarm(stub)).toBe(true);
  expect(origin.posts).toBe(1);
  expect(await alarmOf(stub)).toBeNull();
});

test("a fault of the storage ends no chain: the alarm comes back, nothing is lost or doubled", async () => {
  const stub = freshOutbox();
  let open = (): void => {};
  origin.gate = new Promise((resolve) => {
    open = resolve;
  });
  await append(stub, request());
  await runInDurableObject(stub, (_instance, { storage }) => {
    storage.sql.exec(
      "CREATE TRIGGER t BEFORE DELETE ON frames BEGIN SELECT RAISE(ABORT, 'no trim'); END",
    );
  });
  open();
  const broken = await untilStatus(stub, ({ lastError }) => lastError !== null);
  expect(broken).toMatchObject({
    frames: 1,
    acked: 0,
    lastError: expect.stringMatching("no trim"),
  });
  expect((await alarmOf(stub)) ?? 0).toBeGreaterThan(Date.now() + 50_000);
  await runInDurableObject(stub, (_instance, { storage }) => {
    storage.sql.exec("DROP TRIGGER t");
  });
  expect(await runDurableObjectAlarm(stub)).toBe(true);
  expect(await drained(stub)).toMatchObject({ lastError: null });
  expect(origin.records("s")).toEqual(["1"]);
});

test("F3 the highest FSN survives trimming and eviction", async () => {
  const stub = freshOutbox();
  await appendEach(stub, numbered(0, 3));
  await drained(stub);
  await evictDurableObject(stub);
  const reply = await append(again(stub), request({ records: ["3"] }));
  expect(reply.answers).toMatchObject([{ fsn: 4 }]);
  const status = await drained(again(stub));
  expect(status).toMatchObject({ highestFsn: 4, acked: 4, endedEpochs: [] });
  expect(origin.records("s")).toEqual(numbered(0, 4));
});

/** What a restore brings back: the tables as they were. */
async function snapshot(stub: Stub): Promise<() => Promise<void>> {
  const tables = ["meta", "frames", "producers", "batches"];
  const rows = await runInDurableObject(stub, (_instance, { storage }) =>
    tables.map((table) => storage.sql.exec(`SELECT * FROM ${table}`).toArray()),
  );
  return async () => {
    await runInDurableObject(again(stub), (_instance, { storage }) => {
      for (const [i, table] of tables.entries()) {
        storage.sql.exec(`DELETE FROM ${table}`);
        for (const row of rows[i] ?? []) {
          const places = Object.keys(row).map(() => "?");
          storage.sql.exec(`INSERT INTO ${table} VALUES (${places.join()})`, ...Object.values(row));
        }
      }
    });
    await evictDurableObject(again(stub));
  };
}

test.each([
  ["fewer frames than the origin has", 1],
  ["as many frames as the origin has", 3],
  ["more frames than the origin has", 6],
])("F3 storage set back to an older state, then %s: nothing is lost", async (_how, count) => {
  const stub = freshOutbox();
  await appendEach(stub, numbered(0, 2));
  const before = await drained(stub);
  const restore = await snapshot(stub);
  await appendEach(stub, numbered(2, 3));
  await drained(stub);
  await restore();
  origin.fault = "down";
  const later = again(stub);
  await appendEach(later, numbered(100, count));
  origin.fault = "none";
  const status = await drained(later);
  expect(origin.records("s")).toEqual([...numbered(0, 5), ...numbered(100, count)]);
  expect(status.epoch).not.toBe(before.epoch);
  expect(status).toMatchObject({
    highestFsn: count,
    acked: count,
    endedEpochs: [{ epoch: before.epoch, ending: "rewound", lost: null }],
  });
});

test("F3 set back with a backlog: what the origin has of it is dropped, what is newer is sent", async () => {
  const stub = freshOutbox();
  await appendEach(stub, numbered(0, 2));
  await drained(stub);
  let open = (): void => {};
  origin.gate = new Promise((resolve) => {
    open = resolve;
  });
  await appendEach(stub, numbered(2, 2));
  const restore = await snapshot(stub);
  open();
  await drained(stub);
  await appendEach(stub, numbered(4, 1));
  await drained(stub);
  await restore();
  const later = again(stub);
  await appendEach(later, ["new"]);
  expect(await drained(later)).toMatchObject({ endedEpochs: [{ ending: "rewound" }] });
  expect(origin.records("s")).toEqual([...numbered(0, 5), "new"]);
});

test("F3 an origin on an empty disk: what is kept goes to it in a new epoch, what it lost is named", async () => {
  const stub = freshOutbox();
  const first = await append(stub, request({ records: ["0"] }), request());
  await appendEach(stub, numbered(1, 2));
  await drained(stub);
  origin.fault = "down";
  const kept = await append(stub, request({ records: ["3"] }));
  await appendEach(stub, numbered(4, 2));
  const { buffer } = await untilStatus(stub, ({ attempts }) => attempts >= 2);
  origin.loseHistory();
  origin.applied.length = 0;
  origin.fault = "none";
  const status = await drained(stub);
  expect(origin.records("s")).toEqual(numbered(3, 3));
  expect(status.epoch).not.toBe(first.epoch);
  expect(status).toMatchObject({
    highestFsn: 3,
    acked: 3,
    endedEpochs: [{ epoch: first.epoch, ending: "origin_history_lost", lost: { from: 1, to: 3 } }],
    ledger: { accepted: 7, acknowledged: 7 },
  });
  // Positions given before the change still mean what they meant.
  expect(await stub.ack(`${buffer}.${first.epoch}.1.0`, 0)).toMatchObject({
    kind: "refused",
    code: "origin_history_lost",
  });
  expect(kept.epoch).toBe(first.epoch);
  expect(await stub.ack(`${buffer}.${kept.epoch}.4.0`, 0)).toEqual({
    kind: "state",
    received: true,
    durable: true,
  });
  // And duplicates of what lies in the ended epoch are known, the kept ones by their new FSN.
  expect((await append(stub, request({ records: ["6"] }))).answers).toMatchObject([{ fsn: 4 }]);
  await drained(stub);
  expect(origin.applied.at(-1)?.fsn).toBe(4);
});

test("F4 an empty outbox has no alarm and no POST in flight, and is constructed again by the next write", async () => {
  const stub = freshOutbox();
  await append(stub, request());
  expect(await drained(stub)).toMatchObject({ constructions: 1 });
  expect(await alarmOf(stub)).toBeNull();
  expect(origin.inFlight).toBe(0);
  await evictDurableObject(stub);
  expect(await checkedStatus(again(stub))).toMatchObject({ constructions: 1 });
  await append(again(stub), request());
  expect(await drained(again(stub))).toMatchObject({ constructions: 2 });
  expect(await alarmOf(again(stub))).toBeNull();
});

test("F6 a POST carries up to 4 MiB of frames, one POST at a time", async () => {
  const stub = freshOutbox();
  let open = (): void => {};
  origin.gate = new Promise((resolve) => {
    open = resolve;
  });
  const record = new Uint8Array(900_000).fill(0x31);
  for (let i = 0; i < 12; i++) {
    await append(stub, request({ records: [record] }));
  }
  open();
  expect(await drained(stub)).toMatchObject({
    link: { framesSent: 12, framesReplayed: 0, framesAcked: 12 },
  });
  expect(origin.postFrames).toEqual([1, 4, 4, 3]);
  expect(Math.max(...origin.postBytes)).toBeLessThanOrEqual(limits.pushBytesMax);
  expect(origin.inFlightMax).toBe(1);
});

test("F12 frames the origin has already are acknowledged as replays, not applied again", async () => {
  const stub = freshOutbox();
  origin.fault = "dropReply";
  await appendEach(stub, numbered(0, 4));
  await untilStatus(stub, ({ attempts }) => attempts >= 2);
  origin.fault = "none";
  const status = await drained(stub);
  expect(origin.records("s")).toEqual(numbered(0, 4));
  expect(origin.replays).toBeGreaterThan(0);
  expect(status.link.framesReplayed).toBeGreaterThan(0);
});

test.each(["nack", "unreadable"] as const)(
  "a frame that is poison (%s) is given up after 4 strikes and 5 s: dead, VOID in its place, the rest goes on",
  async (how) => {
    const stub = freshOutbox();
    if (how === "nack") {
      origin.poison = { stream: "poison", code: "frame_spans_shards" };
    } else {
      origin.unreadable = "poison";
    }
    await append(stub, request({ records: ["0"] }));
    const { epoch } = await append(stub, request({ stream: "poison", records: ["a", "b"] }));
    await append(stub, request({ records: ["1"] }));
    const struck = await untilStatus(stub, ({ strikes }) => strikes >= 2);
    expect(struck).toMatchObject({ acked: 1, frames: 2, highestFsn: 3 });
    const { buffer } = struck;
    const position = `${buffer}.${epoch}.2.0`;
    expect(await stub.ack(position, 0)).toMatchObject({ kind: "state", durable: false });
    await ageStrikes(stub);
    const later = again(stub);
    const waiting = later.ack(position, 20_000);
    const status = await drained(later);
    expect(await waiting).toMatchObject({ kind: "refused", code: "frame_given_up" });
    expect(origin.applied.map((frame) => [frame.fsn, isVoid(frame), frame.voidReason])).toEqual([
      [1, false, ""],
      [2, true, how === "nack" ? "frame_spans_shards" : "bad_frame"],
      [3, false, ""],
    ]);
    expect(status).toMatchObject({
      acked: 3,
      strikes: 0,
      ledger: { accepted: 4, acknowledged: 2, dead: 2 },
      link: { framesVoided: 1 },
    });
    const dead = await runInDurableObject(later, (_instance, { storage }) =>
      storage.sql.exec("SELECT row, epoch, fsn, n, reason FROM dead").toArray(),
    );
    expect(dead).toMatchObject([{ row: 2, epoch, fsn: 2, n: 2 }]);
    // Afterwards POSTs carry several frames again.
    let open = (): void => {};
    origin.gate = new Promise((resolve) => {
      open = resolve;
    });
    await appendEach(later, numbered(2, 4));
    open();
    await drained(later);
    expect(origin.postFrames.slice(-2)).toEqual([1, 3]);
  },
  30_000,
);

test("F14 NACKs are counted by code, the newest error and the oldest age are told", async () => {
  const stub = freshOutbox();
  origin.poison = { stream: "s", code: "journal_failed" };
  await append(stub, request());
  const failing = await untilStatus(stub, ({ attempts }) => attempts >= 2);
  expect(failing.link.nacks["journal_failed"]).toBeGreaterThanOrEqual(2);
  expect(failing).toMatchObject({
    strikes: 0,
    lastError: "journal_failed: refused: journal_failed",
  });
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect((await checkedStatus(stub)).oldestUnackedMs).toBeGreaterThanOrEqual(50);
  origin.poison = null;
  expect(await drained(stub)).toMatchObject({ oldestUnackedMs: 0, lastError: null });
});
