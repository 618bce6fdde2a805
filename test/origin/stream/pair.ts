import assert from "node:assert/strict";
import fc from "fast-check";
import { lsn } from "../../../shared/ids/mod.ts";
import { limits } from "../../../shared/limits.ts";
import {
  bench,
  type Bench,
  bytes,
  contents,
  crashed,
  ingested,
  isRefused,
  outboxFrame,
  outcome,
  post,
  put,
  readBatch,
  Reply,
  tag,
} from "./harness.ts";
import { formatOffset } from "../../../shared/protocol/mod.ts";
import {
  type FramePost,
  type Naive,
  naiveDelete,
  naiveForward,
  naivePost,
  naivePut,
  type Put,
} from "./naive.ts";

export const paths = ["a", "b", "c"];
const path = fc.constantFrom(...paths);
const type = fc.constantFrom("application/json", "application/json", "text/plain");
const producer = fc.option(
  fc.record({ id: fc.constantFrom("P", "Q"), epoch: fc.nat(1), seq: fc.nat(4) }),
);
const post_ = fc.record({
  do: fc.constant("post" as const),
  path,
  type,
  body: fc.constantFrom("1", "[2,[3]]", "[]", "{", ""),
  producer,
  streamSeq: fc.option(fc.constantFrom("1", "2", "3"), { freq: 3 }),
  close: fc.nat(7).map((n) => n === 0),
});
const put_ = fc.record({
  do: fc.constant("put" as const),
  path,
  type,
  closed: fc.nat(4).map((n) => n === 0),
  body: fc.constantFrom("", "7", "[8,9]", "[]", "{"),
  fork: fc.constant(null),
});
const fork_ = fc.record({
  do: fc.constant("put" as const),
  path,
  type: fc.option(type, { freq: 2 }),
  closed: fc.nat(6).map((n) => n === 0),
  body: fc.constantFrom("", "", "7", "{"),
  fork: fc.record({
    from: path,
    at: fc.option(fc.nat(4), { freq: 2 }),
    subOffset: fc.constantFrom(0, 0, 1, 2, 5),
  }),
});
const frame_ = fc.record({
  do: fc.constant("frame" as const),
  ahead: fc.constantFrom(1, 1, 1, 1, 0, 2),
  posts: fc.array(
    fc.record({
      path,
      record: fc.constantFrom("10", "11"),
      producer: fc.option(
        fc.record({
          id: fc.constantFrom("P", "Q"),
          epoch: fc.nat(1),
          seq: fc.constantFrom(0, 1, 2, 3, 4, 5, 40, 68, 69),
        }),
      ),
    }),
    { maxLength: 4 },
  ),
});
/** What can happen to the streams. */
export const step = fc.oneof(
  { arbitrary: post_, weight: 8 },
  { arbitrary: put_, weight: 4 },
  { arbitrary: fork_, weight: 4 },
  { arbitrary: frame_, weight: 3 },
  { arbitrary: fc.record({ do: fc.constant("delete" as const), path }), weight: 2 },
  { arbitrary: fc.record({ do: fc.constant("commit" as const), back: fc.nat(3) }), weight: 3 },
  { arbitrary: fc.constant({ do: "crash" as const }), weight: 1 },
);

export type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Both sides, in step. `copies[n]` is the model after entry n. */
export class Pair {
  real: Bench = bench();
  model: Naive = { streams: {}, softDeleted: {}, lives: 0, fsn: 0, quarantined: [] };
  readonly copies: Naive[] = [structuredClone(this.model)];
  replies: { at: number; reply: Reply }[] = [];

  constructor() {
    this.hello();
    this.noted();
  }

  hello(): void {
    this.real.streams.hello({ buffer: "eu:0", epoch: "e1", boot: 1, highestFsn: 0 });
  }

  /** Every entry has a copy of the model behind it. */
  noted(): void {
    while (this.copies.length <= this.real.journal.reserved) {
      this.copies.push(structuredClone(this.model));
    }
  }

  answered(verdict: { lsn: number }): void {
    const reply = new Reply();
    this.real.streams.hold(lsn(verdict.lsn), reply);
    this.replies.push({ at: verdict.lsn, reply });
  }

  commit(back: number): void {
    const { journal } = this.real;
    journal.commit(lsn(Math.max(journal.durable, journal.reserved - back)));
  }

  crash(): void {
    const { durable } = this.real.journal;
    this.real = crashed(this.real);
    this.copies.length = durable + 1;
    this.model = structuredClone(this.copies[durable] ?? this.model);
    this.replies = [];
    this.hello();
    this.noted();
  }

  /** Readers see exactly the model at the durable entry; HEAD the newest one; replies what is durable. */
  check(): void {
    const { streams, journal } = this.real;
    const durable = this.copies[journal.durable];
    for (const name of paths) {
      const newest = this.model.streams[name];
      const meta = streams.meta(name);
      assert.equal(isRefused(meta), newest === undefined);
      if (isRefused(meta)) {
        assert.equal(meta.status, this.model.softDeleted[name] === undefined ? 404 : 410);
      }
      const seen = durable?.streams[name];
      if (newest !== undefined) {
        assert.partialDeepStrictEqual(meta, { closed: newest.closed, contentType: newest.type });
        const same = seen !== undefined && seen.life === newest.life;
        // What a fork inherits is there as soon as the fork is, and is sent when it is durable.
        const inherited = newest.records.slice(0, newest.fork?.inherited ?? 0);
        assert.deepEqual(contents(streams, name), same ? seen.records : inherited);
        assert.equal(readBatch(streams, name).closed, same && seen.closed);
      }
    }
    for (const { at, reply } of this.replies) {
      assert.equal(reply.state === "sent" ? at <= journal.durable : true, true);
    }
  }

  run(each: Step): void {
    const { streams } = this.real;
    switch (each.do) {
      case "post": {
        const { body, type: contentType, producer: by } = each;
        const extras = { contentType, streamSeq: each.streamSeq, close: each.close };
        const by_ = by === null ? null : tag(by.id, by.epoch, by.seq);
        const verdict = streams.append(post(each.path, body, { ...extras, producer: by_ }));
        assert.equal(outcome(verdict), naivePost(this.model, each));
        this.noted();
        this.answered(verdict);
        return;
      }
      case "put": {
        const { closed, type: contentType } = each;
        const fork = each.fork && { ...each.fork, offset: this.offsetOf(each.fork) };
        const verdict = streams.create(
          put(each.path, { closed, contentType, fork, body: bytes(each.body) }),
        );
        assert.equal(outcome(verdict), naivePut(this.model, each));
        this.noted();
        this.answered(verdict);
        return;
      }
      case "delete": {
        const verdict = streams.remove(each.path);
        assert.equal(outcome(verdict), naiveDelete(this.model, each.path));
        this.noted();
        this.answered(verdict);
        return;
      }
      case "frame":
        this.frame(each.ahead, each.posts);
        return;
      case "commit":
        this.commit(each.back);
        return;
      case "crash":
        this.crash();
        return;
    }
  }

  /** The offset of the source's record `at`; one past the tail has a made-up byte position. */
  offsetOf({ from, at }: NonNullable<Put["fork"]>): string | null {
    const before = this.model.streams[from]?.records.slice(0, at ?? 0) ?? [];
    return at === null ? null : formatOffset(at, before.join("").length);
  }

  frame(ahead: number, posts: readonly FramePost[]): void {
    const fsn = this.model.fsn + ahead;
    const acceptedAt = this.real.clock.now() + limits.edgeClockSkewMsMax;
    const requests = posts.map(({ path: to, record, producer: by }) =>
      ingested(to, [record], { producer: by, acceptedAt }),
    );
    const result = this.real.streams.applyFrame(outboxFrame(fsn, requests));
    if (fsn === 0) {
      assert.partialDeepStrictEqual(result, { code: "bad_frame", retryable: false });
      return;
    }
    if (ahead === 0) {
      assert.equal(result.kind, "replayed");
      return;
    }
    if (ahead === 2) {
      assert.partialDeepStrictEqual(result, { code: "frame_gap", expectedFsn: fsn - 1 });
      return;
    }
    assert.equal(result.kind, "applied");
    this.model.fsn = fsn;
    for (const one of posts) {
      naiveForward(this.model, one);
    }
    this.noted();
  }
}
