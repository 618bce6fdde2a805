import { ForebayError } from "../../shared/errors/mod.ts";
import type { Frame, Hello } from "../../shared/frame/types.ts";
import type { Lsn } from "../../shared/ids/mod.ts";
import type { Clock } from "../../shared/ports/mod.ts";
import type { Journal } from "../journal/types.ts";
import type { RecordStore } from "../store/mod.ts";
import { apply } from "./apply.ts";
import { decodeEntry } from "./entry.ts";
import { Followers } from "./followers.ts";
import { applyDirect, applyFrame } from "./frames.ts";
import { OutputGate } from "./gate.ts";
import { hello } from "./outbox.ts";
import { list, meta, read } from "./reads.ts";
import { Shard } from "./shard.ts";
import type { Streams, StreamsStats } from "./types.ts";
import { create, remove, write } from "./writes.ts";

export interface StreamsOptions {
  readonly clock: Clock;
  readonly store: RecordStore;
}

/** The streams together with what their journal calls. */
export interface OwnedStreams extends Streams {
  /** One recovered entry. All of them come before `start`. */
  replay(lsn: Lsn, bytes: Uint8Array): void;
  /** After replay: from here on changes are written to `journal`. */
  start(journal: Journal): void;
  onDurable(durable: Lsn): void;
  onFailed(error: Error): void;
  /** Lets go of the deadline timer. */
  close(): void;
}

/** The streams of one shard, empty until their journal is replayed into them. */
export function createStreams(options: StreamsOptions): OwnedStreams {
  const shard = new Shard(options.clock, options.store);
  const gate = new OutputGate();
  const followers = new Followers(shard);
  let framesReplayed = 0;

  /** Readers first see what is durable, then replies leave, then followers come to read. */
  const onDurable = (durable: Lsn): void => {
    const followed = shard.touched.advance(durable, (ended) => shard.store.drop(ended.id));
    gate.advance(durable);
    followers.tell(followed);
  };

  return {
    create: (request) => create(shard, request),
    append: (request) =>
      write(shard, {
        path: request.path,
        contentType: request.contentType,
        body: request.body,
        split: null,
        producer: request.producer,
        streamSeq: request.streamSeq,
        expectedOffset: request.expectedOffset,
        close: request.close,
        create: false,
      }),
    ingest: (request) =>
      write(shard, {
        path: request.path,
        contentType: request.contentType,
        body: noBytes,
        split: request.records,
        producer: request.producer,
        streamSeq: null,
        expectedOffset: null,
        close: false,
        create: request.create,
      }),
    remove: (path) => remove(shard, path),
    meta: (path) => meta(shard, path),
    read: (path, offset, how) => read(shard, path, offset, how),
    list: (prefix, after, limit) => list(shard, prefix, after, limit),
    follow: (path, follower) => followers.follow(path, follower),
    unfollow: (_path, follower) => followers.unfollow(follower),
    hold: (lsn, waiter) => gate.hold(lsn, waiter),
    hello: (from: Hello) => hello(shard, from),
    applyDirect: (frame: Frame) => applyDirect(shard, frame),
    applyFrame: (frame: Frame) => {
      const outcome = applyFrame(shard, frame);
      framesReplayed += outcome.kind === "replayed" ? 1 : 0;
      return outcome;
    },
    stats: () =>
      statsOf(shard, { framesReplayed, waiting: gate.waiting, followers: followers.size }),

    replay: (lsn, bytes) => {
      for (const op of decodeEntry(bytes)) {
        apply(shard, op, lsn);
      }
      onDurable(lsn);
    },
    start: (journal) => {
      shard.attach(journal);
      shard.recover();
      onDurable(journal.durable);
    },
    onDurable,
    onFailed: (error) => {
      gate.fail(
        new ForebayError("outcome_unknown", `the journal failed: ${error.message}`, {
          cause: error,
        }),
      );
    },
    close: () => followers.close(),
  };
}

const noBytes = new Uint8Array(0);

function statsOf(
  shard: Shard,
  now: Pick<StreamsStats, "framesReplayed" | "waiting" | "followers">,
): StreamsStats {
  return { streams: shard.state.byPath.size, ...shard.state.counters, ...now };
}
