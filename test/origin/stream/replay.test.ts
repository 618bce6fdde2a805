import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { limits } from "../../../shared/limits.ts";
import { decodeEntry } from "../../../origin/stream/entry.ts";
import { apply } from "../../../origin/stream/apply.ts";
import { hello } from "../../../origin/stream/outbox.ts";
import { Shard } from "../../../origin/stream/shard.ts";
import { lsn } from "../../../shared/ids/mod.ts";
import { ResidentRecords } from "../store/harness.ts";
import { image } from "./image.ts";
import { perform, step } from "./steps.ts";
import {
  bench,
  bytes,
  contents,
  crashed,
  ingested,
  outboxFrame,
  outcome,
  post,
  put,
  request,
  tag,
  TestClock,
  TestJournal,
} from "./harness.ts";

const newShard = (clock: TestClock): Shard => new Shard(clock, new ResidentRecords(1 << 26));

function replayed(
  entries: readonly Uint8Array[],
  clock: TestClock,
  shard = newShard(clock),
): Shard {
  entries.forEach((entry, i) => {
    for (const op of decodeEntry(entry)) {
      apply(shard, op, lsn(i + 1));
    }
  });
  return shard;
}

test("J25 replay gives the live state, twice the same, whatever happened", () => {
  const kinds = new Set<number>();
  let forks = 0;
  let softDeleted = 0;
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60, size: "max" }), (steps) => {
      const clock = new TestClock();
      const journal = new TestJournal();
      const live = newShard(clock);
      live.attach(journal);
      hello(live, { buffer: "eu:0", epoch: "e1", boot: 2, highestFsn: 0 });
      for (const each of steps) {
        perform(live, clock, each);
      }
      clock.advance(123_456);
      softDeleted += live.state.softDeleted.size;
      const expected = image(live);
      expect(image(replayed(journal.entries, clock))).toEqual(expected);
      expect(image(replayed(journal.entries, clock))).toEqual(expected);
      for (const entry of journal.entries) {
        for (const op of decodeEntry(entry)) {
          kinds.add(op.kind);
          forks += op.kind === 1 && op.fork !== null ? 1 : 0;
        }
      }
    }),
    { numRuns: 400 },
  );
  expect([...kinds].sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(forks).toBeGreaterThan(50);
  expect(softDeleted).toBeGreaterThan(10);
}, 60_000);

describe("after a crash", () => {
  test("P9 a producer's state is exactly that of its data", () => {
    const from = bench();
    const { streams, journal } = from;
    streams.create(put("s"));
    streams.append(post("s", "0", { producer: tag("P", 1, 0), streamSeq: "1" }));
    journal.commit();
    streams.append(post("s", "1", { producer: tag("P", 1, 1), streamSeq: "2" }));
    const after = crashed(from).streams;
    expect(outcome(after.append(post("s", "0", { producer: tag("P", 1, 0) })))).toBe("204");
    expect(outcome(after.append(post("s", "2", { producer: tag("P", 1, 2) })))).toBe(
      "409 producer_gap",
    );
    expect(outcome(after.append(post("s", "x", { producer: tag("P", 0, 0) })))).toBe(
      "403 stale_epoch",
    );
    expect(outcome(after.append(post("s", "x", { streamSeq: "1" })))).toBe(
      "409 stream_seq_regression",
    );
    expect(
      outcome(after.append(post("s", "1", { producer: tag("P", 1, 1), streamSeq: "2" }))),
    ).toBe("200");
  });

  test("J30 counters and gauges go on from what was recovered", () => {
    const from = bench();
    const { streams, journal } = from;
    streams.hello({ buffer: "eu:0", epoch: "e1", boot: 1, highestFsn: 0 });
    streams.create(put("s", { body: bytes("abc") }));
    streams.append(post("s", "de", { producer: tag("P", 0, 0) }));
    streams.applyFrame(
      outboxFrame(1, [ingested("t", ["1"], { producer: tag("Q", 0, 0) }), request("none", ["x"])]),
    );
    streams.create(put("gone", { body: bytes("x") }));
    streams.append(post("gone", "x", { producer: tag("R", 0, 0) }));
    streams.remove("gone");
    journal.commit();
    expect(streams.stats()).toEqual({
      streams: 3,
      recordsStored: 5,
      bytesStored: 8,
      recordsDeduplicated: 0,
      recordsQuarantined: 1,
      framesApplied: 1,
      framesReplayed: 0,
      producers: 2,
      waiting: 0,
      followers: 0,
    });
    const after = crashed(from);
    expect(after.streams.stats()).toEqual(streams.stats());
    expect(after.store.bytesHeld).toBe(from.store.bytesHeld);
  });

  test("stream ids are not given twice, a dead stream's neither", () => {
    const from = bench();
    from.streams.create(put("s"));
    from.streams.remove("s");
    from.journal.commit();
    const after = crashed(from).streams;
    after.create(put("s"));
    expect(after.meta("s")).toMatchObject({ id: 2 });
  });

  test("P4 a sliding deadline is put TTL/8 later: no read that was answered is forgotten", () => {
    const from = bench();
    const { streams, journal, clock } = from;
    streams.create(put("s", { ttlSeconds: 80 }));
    journal.commit();
    clock.advance(10_000);
    streams.read("s", "-1", { maxBytes: 9, touch: true });
    expect(journal.entries.length).toBe(1);
    const after = crashed(from);
    clock.advance(79_999);
    expect(after.streams.meta("s")).toMatchObject({ id: 1 });
    clock.advance(1);
    expect(after.streams.meta("s")).toMatchObject({ code: "stream_not_found" });
  });

  test("an expiry that was answered stays one, though the clock went back", () => {
    const from = bench();
    from.streams.create(put("s", { ttlSeconds: 1 }));
    from.clock.advance(1000);
    expect(from.streams.meta("s")).toMatchObject({ status: 404 });
    from.journal.commit();
    from.clock.set(from.clock.now() - 900);
    expect(crashed(from).streams.meta("s")).toMatchObject({ status: 404 });
  });

  test("a damaged entry stops the start with its name", () => {
    const from = bench();
    from.streams.create(put("s"));
    const [entry] = from.journal.entries;
    const cut = entry?.subarray(0, entry.length - 1) ?? new Uint8Array(0);
    expect(() => bench({ entries: [cut] })).toThrow(
      expect.objectContaining({ code: "journal_corrupt" }),
    );
  });

  test("when the clock goes back, times of a stream do not, nor does a deadline", () => {
    const from = bench();
    const { streams, journal, clock } = from;
    const start = clock.now();
    streams.create(put("s", { ttlSeconds: 10 }));
    for (const moved of [start + 5000, start + 1000, start + 6000]) {
      clock.set(moved);
      streams.append(post("s", "x"));
    }
    const times = journal.entries
      .slice(1)
      .flatMap((entry) => decodeEntry(entry).map((op) => ("time" in op ? op.time - start : null)));
    expect(times).toEqual([5000, 5000, 6000]);
    journal.commit();
    clock.set(start + 15_999);
    expect(contents(streams, "s")).toEqual(["x", "x", "x"]);
    clock.set(start + 16_000);
    expect(streams.meta("s")).toMatchObject({ status: 404 });
  });

  test("when the clock goes back, who was idle is judged and applied alike", () => {
    const from = bench();
    const { streams, clock } = from;
    const start = clock.now();
    streams.create(put("s"));
    streams.append(post("s", "0", { producer: tag("P", 0, 0) }));
    clock.set(start + limits.producerIdleMsMax + 1);
    streams.append(post("s", "x"));
    clock.set(start);
    const back = streams.append(post("s", "1", { producer: tag("P", 0, 1) }));
    expect(outcome(back)).toBe("409 producer_gap");
    expect(outcome(streams.append(post("s", "1", { producer: tag("P", 0, 0) })))).toBe("200");
  });
});
