import fc from "fast-check";
import { limits } from "../../../shared/limits.ts";
import { applyFrame } from "../../../origin/stream/frames.ts";
import { hello } from "../../../origin/stream/outbox.ts";
import type { Shard } from "../../../origin/stream/shard.ts";
import { create } from "../../../origin/stream/creation.ts";
import { positionOf } from "../../../origin/stream/lineage.ts";
import { remove, write } from "../../../origin/stream/writes.ts";
import { formatOffset } from "../../../shared/protocol/mod.ts";
import type { CreateRequest } from "../../../origin/stream/mod.ts";
import { bytes, outboxFrame, post, request, type TestClock } from "./harness.ts";

/*
 * What may happen to a shard: a step is one request, or time that passes.
 */

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
export const step = fc.oneof(
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
export type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

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

export function perform(shard: Shard, clock: TestClock, each: Step): void {
  switch (each.do) {
    case "put":
      create(shard, { ...each, ...forkOf(shard, each), expiresAt: null, body: bytes(each.body) });
      return;
    case "post":
      write(shard, {
        ...post(each.path, each.body, { ...each, body: bytes(each.body) }),
        split: null,
        checked: false,
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
