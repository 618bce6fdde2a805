import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { limits } from "../../../shared/limits.ts";
import { decodeEntry } from "../../../origin/stream/entry.ts";
import { apply } from "../../../origin/stream/apply.ts";
import { applyFrame } from "../../../origin/stream/frames.ts";
import { hello } from "../../../origin/stream/outbox.ts";
import { Shard } from "../../../origin/stream/shard.ts";
import { create } from "../../../origin/stream/creation.ts";
import { positionOf, readRecords } from "../../../origin/stream/lineage.ts";
import type { StreamState } from "../../../origin/stream/state.ts";
import { remove, write } from "../../../origin/stream/writes.ts";
import { lsn } from "../../../shared/ids/mod.ts";
import { formatOffset } from "../../../shared/protocol/mod.ts";
import { ResidentStore } from "../../../origin/store/mod.ts";
import type { CreateRequest } from "../../../origin/stream/mod.ts";
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
  text,
} from "./harness.ts";

/** All that must be the same live and replayed: everything but what is durable, followers and moved deadlines. */
function image({ state, store }: Shard): unknown {
  const imageOf = (stream: StreamState): unknown => {
    const {
      fork,
      deadline,
      durableRecord,
      durableByte,
      durableClosed,
      followers,
      toldAt,
      producersIdleFrom,
      ...kept
    } = stream;
    void [
      deadline,
      durableRecord,
      durableByte,
      durableClosed,
      followers,
      toldAt,
      producersIdleFrom,
    ];
    const all = { from: 0, to: stream.record, maxBytes: Number.MAX_SAFE_INTEGER };
    const edge = fork && { ...fork, source: fork.source.id };
    return { ...kept, edge, records: readRecords(store, stream, all).map(text) };
  };
  return {
    streams: [...state.byId.values()].map(imageOf),
    softDeleted: [...state.softDeleted].map(([path, stream]) => [path, imageOf(stream)]),
    paths: [...state.byPath].map(([path, stream]) => [path, stream.id]),
    ends: [...state.ends],
    outboxes: [...state.outboxes],
    lastId: state.lastId,
    endLsn: state.endLsn,
    counters: state.counters,
  };
}

const newShard = (clock: TestClock): Shard => new Shard(clock, new ResidentStore(1 << 26));

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

const path = fc.constantFrom("a", "b", "c");
const contentType = fc.constantFrom("text/plain", "application/json");
const producer = fc.option(
  fc.record({ id: fc.constantFrom("P", "Q"), epoch: fc.nat(2), seq: fc.nat(70) }),
);
const body = fc.constantFrom("1", "[1,[2]]", "x", "[]", '{"a":1}');
const put_ = fc.record({
  do: fc.constant("put" as const),
  path,
  contentType,
  ttlSeconds: fc.option(fc.constantFrom(1, 100), { freq: 2 }),
  closed: fc.boolean(),
  body: fc.constantFrom("", "1", "[1,2]"),
  fork: fc.option(
    fc.record({
      from: path,
      at: fc.option(fc.nat(4)),
      subOffset: fc.constantFrom(0, 0, 1, 2),
      typed: fc.boolean(),
    }),
    { freq: 2 },
  ),
});
const step = fc.oneof(
  { arbitrary: put_, weight: 4 },
  fc.record({
    do: fc.constant("post" as const),
    path,
    contentType,
    body,
    producer,
    streamSeq: fc.option(fc.constantFrom("1", "2", "3")),
    close: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
  }),
  fc.record({ do: fc.constant("delete" as const), path }),
  fc.record({ do: fc.constant("read" as const), path }),
  fc.record({
    do: fc.constant("wait" as const),
    ms: fc.constantFrom(1, 500, 20_000, limits.producerIdleMsMax),
  }),
  fc.record({ do: fc.constant("back" as const), ms: fc.constantFrom(1, 5000) }),
  fc.record({
    do: fc.constant("hello" as const),
    epoch: fc.constantFrom("e1", "e2"),
    boot: fc.nat(4),
  }),
  fc.record({
    do: fc.constant("frame" as const),
    fsn: fc.nat(6),
    boot: fc.nat(4),
    age: fc.constantFrom(0, 3000),
    requests: fc.array(fc.record({ path, contentType, body, producer, flags: fc.nat(3) }), {
      maxLength: 5,
    }),
  }),
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** The fork a step asks for, with the offset of the record it names where there is one. */
function forkOf(
  { state, store }: Shard,
  { fork, contentType: type }: Extract<Step, { do: "put" }>,
): Pick<CreateRequest, "fork" | "contentType"> {
  if (fork === null) {
    return { fork, contentType: type };
  }
  const source = state.byPath.get(fork.from);
  const { at, from, subOffset } = fork;
  const offset =
    at === null || source === undefined || at > source.record
      ? null
      : formatOffset(at, positionOf(store, source, at));
  return { fork: { from, offset, subOffset }, contentType: fork.typed ? type : null };
}

function perform(shard: Shard, clock: TestClock, each: Step): void {
  switch (each.do) {
    case "put":
      create(shard, { ...each, ...forkOf(shard, each), expiresAt: null, body: bytes(each.body) });
      return;
    case "post":
      write(shard, {
        ...post(each.path, each.body, { ...each, body: bytes(each.body) }),
        split: null,
        create: false,
      });
      return;
    case "delete":
      remove(shard, each.path);
      return;
    case "read": {
      const stream = shard.find(each.path, clock.now());
      if (stream !== undefined) {
        shard.touch(stream, clock.now());
      }
      return;
    }
    case "wait":
      clock.advance(each.ms);
      return;
    case "back":
      clock.set(clock.now() - each.ms);
      return;
    case "hello":
      hello(shard, { buffer: "eu:0", epoch: each.epoch, boot: each.boot, highestFsn: 0 });
      return;
    case "frame": {
      const acceptedAt = clock.now() - each.age;
      const requests = each.requests.map((one) =>
        request(one.path, [one.body], { ...one, acceptedAt }),
      );
      applyFrame(shard, outboxFrame(each.fsn, requests, { boot: each.boot }));
      return;
    }
  }
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
  expect([...kinds].sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(forks).toBeGreaterThan(100);
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
