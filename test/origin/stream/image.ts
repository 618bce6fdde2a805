import { readRecords } from "../../../origin/stream/lineage.ts";
import type { Shard } from "../../../origin/stream/shard.ts";
import type { StreamState } from "../../../origin/stream/state.ts";
import { text } from "./harness.ts";

/** All that must be the same live and replayed: everything but what is durable, followers and moved deadlines. */
export function image({ state, store }: Shard): unknown {
  const all = { from: 0, maxBytes: Number.MAX_SAFE_INTEGER };
  return imageOf(state, (stream) =>
    readRecords(store, stream, { ...all, to: stream.record }).map(text),
  );
}

/** As `image`, with the records as `read` gives them. */
export function imageOf(state: Shard["state"], read: (stream: StreamState) => unknown): unknown {
  const imageOfStream = (stream: StreamState): unknown => {
    const {
      fork,
      deadline,
      durableRecord,
      durableByte,
      durableClosed,
      followers,
      toldAt,
      changedIn,
      producersIdleFrom,
      ...kept
    } = stream;
    void [deadline, durableRecord, durableByte, durableClosed, followers, toldAt];
    void [changedIn, producersIdleFrom];
    return { ...kept, edge: fork && { ...fork, source: fork.source.id }, records: read(stream) };
  };
  const byId = (a: readonly [string, StreamState], b: readonly [string, StreamState]): number =>
    a[1].id - b[1].id;
  return {
    streams: [...state.byId.values()].map(imageOfStream),
    softDeleted: [...state.softDeleted]
      .toSorted(byId)
      .map(([path, stream]) => [path, imageOfStream(stream)]),
    paths: [...state.byPath].map(([path, stream]) => [path, stream.id]),
    ends: [...state.ends],
    outboxes: [...state.outboxes],
    lastId: state.lastId,
    endLsn: state.endLsn,
    counters: state.counters,
  };
}
