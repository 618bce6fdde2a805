import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { beforeEach, expect, test } from "vitest";
import { limits } from "../../../shared/limits.ts";
import { LinkOrigin } from "./linkOrigin.ts";
import {
  again,
  append,
  checkedStatus,
  drained,
  freshOutbox,
  request,
  type Stub,
} from "./outboxUnderTest.ts";

let origin: LinkOrigin;
beforeEach(() => {
  origin = new LinkOrigin();
  origin.install();
});

test("requests of one append share a frame, which the origin gets as it was stored", async () => {
  const stub = freshOutbox();
  const reply = await append(
    stub,
    request({ stream: "a", records: ["1", "2"] }),
    request({ stream: "b", producer: { id: "p", epoch: 3, seq: 0 } }),
  );
  expect(reply.epoch).toMatch(/^[0-9a-z]{10,16}$/);
  expect(reply.answers).toEqual([
    { kind: "accepted", fsn: 1, index: 0, deduplicated: false },
    { kind: "accepted", fsn: 1, index: 1, deduplicated: false },
  ]);
  const status = await drained(stub);
  expect(status).toMatchObject({ highestFsn: 1, acked: 1, frames: 0, bytes: 0, constructions: 1 });
  expect(origin.records("a")).toEqual(["1", "2"]);
  expect(origin.applied[0]?.requests[1]?.producer).toEqual({ id: "p", epoch: 3, seq: 0 });
  expect(origin.hellos).toEqual([
    { buffer: status.buffer, epoch: reply.epoch, boot: status.boot, highestFsn: 1 },
  ]);
  expect(origin.posts).toBe(1);
});

test("asking an outbox that was never used writes nothing", async () => {
  const stub = freshOutbox();
  expect(await checkedStatus(stub)).toMatchObject({ epoch: "", boot: 0, constructions: 0 });
  const tables = await runInDurableObject(stub, (_instance, { storage }) =>
    storage.sql.exec("SELECT name FROM sqlite_master WHERE name = 'frames'").toArray(),
  );
  expect(tables).toEqual([]);
});

/** Rows written and alarms set or deleted by `work`, as Cloudflare bills them. */
async function billed(stub: Stub, work: () => Promise<unknown>): Promise<number[]> {
  const seen = { rows: 0, alarms: 0 };
  const restore = await runInDurableObject(stub, (_instance, { storage }) => {
    const { sql } = storage;
    const exec = sql.exec.bind(sql);
    const setAlarm = storage.setAlarm.bind(storage);
    sql.exec = ((query: string, ...values: unknown[]) => {
      const cursor = exec(query, ...values);
      seen.rows += cursor.rowsWritten;
      return cursor;
    }) as typeof sql.exec;
    storage.setAlarm = (at: number | Date) => {
      seen.alarms += 1;
      return setAlarm(at);
    };
    return () => {
      sql.exec = exec as typeof sql.exec;
      storage.setAlarm = setAlarm;
    };
  });
  await work();
  restore();
  return [seen.rows, seen.alarms];
}

test("an append writes one row for its frame, one for the tail, one per producer and batch", async () => {
  let open = (): void => {};
  origin.gate = new Promise((resolve) => {
    open = resolve;
  });
  const stub = freshOutbox();
  await append(stub, request());
  expect(await billed(stub, () => append(stub, request(), request(), request()))).toEqual([2, 0]);
  const p = (id: string, seq: number) => request({ producer: { id, epoch: 0, seq } });
  expect(await billed(stub, () => append(stub, p("p", 0), p("p", 1), p("q", 0)))).toEqual([4, 0]);
  expect(await billed(stub, () => append(stub, p("p", 2)))).toEqual([3, 0]);
  expect(await billed(stub, () => append(stub, request({ batchId: "b" })))).toEqual([3, 0]);
  // Only the count of what was deduplicated or refused changes.
  expect(await billed(stub, () => append(stub, request({ batchId: "b" }), p("p", 2)))).toEqual([
    1, 0,
  ]);
  expect(await billed(stub, () => append(stub, p("p", 9)))).toEqual([1, 0]);
  // The first POST held one frame; the one after it the other four: each frame's row goes once, the drain is one row.
  const rest = await billed(stub, async () => {
    open();
    await drained(stub);
  });
  expect(rest).toEqual([1 + 1 + 4 + 1, 0]);
  expect(origin.postFrames).toEqual([1, 4]);
  // A quiet outbox: frame and tail, the alarm, then trim and drain.
  const whole = await billed(stub, async () => {
    await append(stub, request());
    await drained(stub);
  });
  expect(whole).toEqual([4, 1]);
});

test("F12 a producer's seq must be the last + 1; what came before is a duplicate", async () => {
  const stub = freshOutbox();
  const p = (epoch: number, seq: number) => request({ producer: { id: "p", epoch, seq } });
  const first = await append(stub, p(1, 0), p(1, 1), p(1, 1), p(1, 3), p(1, 2));
  expect(first.answers).toEqual([
    { kind: "accepted", fsn: 1, index: 0, deduplicated: false },
    { kind: "accepted", fsn: 1, index: 1, deduplicated: false },
    { kind: "accepted", fsn: 1, index: 1, deduplicated: true },
    {
      kind: "refused",
      code: "producer_gap",
      message: "seq 3 came, 2 is the next",
      headers: { "producer-expected-seq": "2", "producer-received-seq": "3" },
    },
    { kind: "accepted", fsn: 1, index: 2, deduplicated: false },
  ]);
  // A duplicate is durable when the producer's newest is.
  const later = await append(stub, p(1, 0), p(0, 5), p(2, 4), p(2, 0), p(1, 3));
  expect(later.answers).toMatchObject([
    { kind: "accepted", fsn: 1, index: 2, deduplicated: true },
    { kind: "refused", code: "stale_epoch", headers: { "producer-epoch": "1" } },
    { kind: "refused", code: "bad_epoch_start" },
    { kind: "accepted", fsn: 2, index: 0, deduplicated: false },
    { kind: "refused", code: "stale_epoch", headers: { "producer-epoch": "2" } },
  ]);
  const status = await drained(stub);
  expect(status.ledger).toEqual({
    accepted: 4,
    deduplicated: 2,
    refused: 4,
    inFrames: 0,
    acknowledged: 4,
    dead: 0,
  });
  expect(origin.applied.flatMap(({ requests }) => requests.map((each) => each.producer))).toEqual([
    { id: "p", epoch: 1, seq: 0 },
    { id: "p", epoch: 1, seq: 1 },
    { id: "p", epoch: 1, seq: 2 },
    { id: "p", epoch: 2, seq: 0 },
  ]);
});

test("F12 a producer is remembered per stream and across eviction, one that is unknown starts at 0", async () => {
  const stub = freshOutbox();
  const p = (stream: string, seq: number) =>
    request({ stream, producer: { id: "p", epoch: 0, seq } });
  await append(stub, p("a", 0), p("b", 0));
  await drained(stub);
  await evictDurableObject(stub);
  const { answers } = await append(again(stub), p("a", 0), p("a", 1), p("b", 2), p("c", 1));
  expect(answers).toMatchObject([
    { kind: "accepted", fsn: 1, index: 0, deduplicated: true },
    { kind: "accepted", fsn: 2, index: 0, deduplicated: false },
    { kind: "refused", code: "producer_gap", headers: { "producer-expected-seq": "1" } },
    { kind: "refused", code: "producer_gap", headers: { "producer-expected-seq": "0" } },
  ]);
});

test("F12 concurrent appends of one producer are stored in seq order, none twice", async () => {
  const stub = freshOutbox();
  const seqs = Array.from({ length: 50 }, (_, seq) => seq);
  const appends = [...seqs, ...seqs].map((seq) =>
    append(stub, request({ records: [`${seq}`], producer: { id: "p", epoch: 0, seq } })),
  );
  await Promise.all(appends);
  expect(await drained(stub)).toMatchObject({ ledger: { accepted: 50, deduplicated: 50 } });
  expect(origin.records("s")).toEqual(seqs.map(String));
  expect(origin.inFlightMax).toBe(1);
});

test("a stream has at most 1,024 producers here; those idle for 7 days make room", async () => {
  const stub = freshOutbox();
  const p = (id: string) => request({ producer: { id, epoch: 0, seq: 0 } });
  const many = Array.from({ length: limits.producersPerStreamMax + 1 }, (_, i) => p(`p${i}`));
  const { answers } = await append(stub, ...many);
  expect(answers.slice(0, -1).every(({ kind }) => kind === "accepted")).toBe(true);
  expect(answers.at(-1)).toMatchObject({ kind: "refused", code: "too_many_producers" });
  expect((await append(stub, p("late"))).answers).toMatchObject([{ code: "too_many_producers" }]);
  await runInDurableObject(stub, (_instance, { storage }) => {
    const cut = Date.now() - limits.producerIdleMsMax - 1;
    storage.sql.exec("UPDATE producers SET at = ? WHERE id IN ('p1', 'p2')", cut);
  });
  const later = await append(stub, p("late"), p("later"), p("latest"));
  expect(later.answers.map(({ kind }) => kind)).toEqual(["accepted", "accepted", "refused"]);
});

test("F11 the same batch id gets the same answer, in one append, in the next, after eviction", async () => {
  const stub = freshOutbox();
  const batch = (batchId: string, stream = "s") =>
    request({ stream, batchId, records: ["1", "2"] });
  const first = await append(stub, request(), batch("x"), batch("x"), batch("y"));
  expect(first.answers).toEqual([
    { kind: "accepted", fsn: 1, index: 0, deduplicated: false },
    { kind: "accepted", fsn: 1, index: 1, deduplicated: false },
    { kind: "accepted", fsn: 1, index: 1, deduplicated: true },
    { kind: "accepted", fsn: 1, index: 2, deduplicated: false },
  ]);
  await drained(stub);
  await evictDurableObject(stub);
  // An id belongs to its stream.
  const later = await append(again(stub), batch("y"), batch("y", "other"));
  expect(later.epoch).toBe(first.epoch);
  expect(later.answers).toEqual([
    { kind: "accepted", fsn: 1, index: 2, deduplicated: true },
    { kind: "accepted", fsn: 2, index: 0, deduplicated: false },
  ]);
  await drained(again(stub));
  expect(origin.records("s")).toEqual(["1", "1", "2", "1", "2"]);
});

test("F11 a refused batch is not remembered: the same id is judged again", async () => {
  const stub = freshOutbox();
  const p = (seq: number, batchId: string) =>
    request({ batchId, producer: { id: "p", epoch: 0, seq } });
  expect((await append(stub, p(1, "x"))).answers).toMatchObject([{ code: "producer_gap" }]);
  const { answers } = await append(stub, p(0, "w"), p(1, "x"));
  expect(answers).toMatchObject([{ kind: "accepted" }, { kind: "accepted", deduplicated: false }]);
});

test("F11 batches are forgotten after 10 minutes or beyond 10,000, at the next sweep", async () => {
  const stub = freshOutbox();
  const batches = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => request({ batchId: `${from + i}` }));
  for (let from = 0; from < 12_000; from += 1000) {
    await append(stub, ...batches(from, 1000));
  }
  const kept = () =>
    runInDurableObject(stub, (_instance, { storage }) =>
      storage.sql.exec<{ n: number }>("SELECT COUNT(*) AS n FROM batches").one(),
    );
  const { n } = await kept();
  expect(n).toBeGreaterThanOrEqual(limits.outboxBatchesMax);
  expect(n).toBeLessThanOrEqual(limits.outboxBatchesMax + 1000);
  await runInDurableObject(stub, (_instance, { storage }) => {
    storage.sql.exec("UPDATE batches SET at = ?", Date.now() - limits.outboxBatchAgeMsMax - 1000);
  });
  await append(stub, ...batches(20_000, 1000));
  expect(await kept()).toEqual({ n: 1000 });
  const { answers } = await append(stub, request({ batchId: "20000" }), request({ batchId: "5" }));
  expect(answers).toMatchObject([{ deduplicated: true }, { deduplicated: false }]);
}, 30_000);

test("F8 a record that fits no frame is refused with its index before anything is stored", async () => {
  const stub = freshOutbox();
  const large = new Uint8Array(limits.frameBytesMax).fill(0x31);
  const fits = large.slice(0, limits.frameBytesMax - 400);
  const { answers } = await append(
    stub,
    request({ records: ["1", large] }),
    request({ stream: "fits", records: [fits] }),
    request({ records: [fits, fits], producer: { id: "p", epoch: 0, seq: 0 } }),
    request({ records: [] }),
    request({ records: ["1", "2"], flags: 0 }),
  );
  expect(answers).toMatchObject(
    [
      { kind: "refused", code: "record_too_large", message: /^record 1 takes 1048\d{3} bytes/ },
      { kind: "accepted", fsn: 1, index: 0 },
      { kind: "refused", code: "frame_too_large", message: /the limit is 1048576/ },
      { kind: "refused", code: "internal" },
      { kind: "refused", code: "internal" },
    ].map((each) => ({
      ...each,
      ...("message" in each ? { message: expect.stringMatching(each.message) } : {}),
    })),
  );
  const status = await drained(stub);
  expect(status.ledger).toMatchObject({ accepted: 1, refused: 2 + 2 + 0 + 2 });
  expect(origin.records("fits")[0]).toHaveLength(fits.length);
});

test("F8 the largest frame is below the limit, one byte more is refused", async () => {
  const stub = freshOutbox();
  const sizes = Array.from({ length: 400 }, (_, i) => limits.frameBytesMax - i);
  let accepted = 0;
  for (const size of sizes) {
    const { answers } = await append(stub, request({ records: [new Uint8Array(size)] }));
    if (answers[0]?.kind === "accepted") {
      accepted = size;
      break;
    }
  }
  // An upper bound decides, so a little less than what would just fit.
  expect(accepted).toBeGreaterThan(limits.frameBytesMax - 320);
  const largest = await runInDurableObject(stub, (_instance, { storage }) =>
    storage.sql.exec<{ n: number }>("SELECT MAX(LENGTH(bytes)) AS n FROM frames").toArray(),
  );
  expect(largest[0]?.n ?? 0).toBeLessThanOrEqual(limits.frameBytesMax);
  await drained(stub);
  expect(origin.records("s")).toHaveLength(1);
});

test("F8 a request larger than a frame is laid into several, in order, in one transaction", async () => {
  const stub = freshOutbox();
  const records = Array.from({ length: 40 }, (_, i) => `${i}`.padStart(100_000, " "));
  const reply = await append(
    stub,
    request({ stream: "small" }),
    request({ stream: "large", records, batchId: "b" }),
    request({ stream: "small" }),
  );
  expect(reply.answers).toEqual([
    { kind: "accepted", fsn: 1, index: 0, deduplicated: false },
    { kind: "accepted", fsn: 4, index: 0, deduplicated: false },
    { kind: "accepted", fsn: 4, index: 1, deduplicated: false },
  ]);
  expect(await append(stub, request({ stream: "large", records, batchId: "b" }))).toEqual({
    epoch: reply.epoch,
    answers: [{ kind: "accepted", fsn: 4, index: 0, deduplicated: true }],
  });
  await drained(stub);
  expect(origin.records("large")).toEqual(records);
  expect(origin.applied.map(({ fsn }) => fsn)).toEqual([1, 2, 3, 4]);
});

test("an append that breaks halfway leaves nothing, and the next one goes on", async () => {
  const stub = freshOutbox();
  await append(stub, request());
  await drained(stub);
  await runInDurableObject(stub, (_instance, { storage }) => {
    storage.sql.exec(
      "CREATE TRIGGER full BEFORE INSERT ON batches BEGIN SELECT RAISE(ABORT, 'broken'); END",
    );
  });
  await expect(append(stub, request(), request({ batchId: "b" }))).rejects.toThrow("broken");
  expect(await checkedStatus(stub)).toMatchObject({ highestFsn: 1, ledger: { accepted: 1 } });
  await runInDurableObject(stub, (_instance, { storage }) => {
    storage.sql.exec("DROP TRIGGER full");
  });
  expect((await append(stub, request({ batchId: "b" }))).answers).toMatchObject([{ fsn: 2 }]);
  await drained(stub);
});
