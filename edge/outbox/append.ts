import { encodeMessage, type FrameRequest } from "../../shared/frame/mod.ts";
import { limits } from "../../shared/limits.ts";
import { Admission } from "./admission.ts";
import type { DrainRate } from "./drainRate.ts";
import type { Tail } from "./rows.ts";
import type { Marks } from "./settings.ts";
import { bytesKept, lifeOf, type Book, type Store } from "./store.ts";
import type { OutboxAnswer, OutboxReply, OutboxRequest } from "./types.ts";

/** The tables of batches and producers are swept after this many new rows, so that one sweep's scan serves them all. */
const sweepEvery = 1000;

/** What an append needs besides the requests. */
export interface AppendRim {
  readonly store: Store;
  readonly buffer: string;
  readonly marks: Marks;
  readonly rate: DrainRate;
  readonly now: number;
  /** This life of the object has no boot yet. */
  readonly boots: boolean;
}

/**
 * One transaction: the frames, one row each, the producers and batches, and the tail. Judged in order; refused requests
 * leave no trace but their count.
 */
export function appendRequests(rim: AppendRim, requests: readonly OutboxRequest[]): OutboxReply {
  const { store, now, marks, rate } = rim;
  return store.change((book) => {
    const tail = rim.boots ? booted(book.tail, now) : book.tail;
    const { epoch, shift } = lifeOf(book);
    const grounds = { now, marks, rate, bytes: bytesKept(book), firstRow: tail.row + 1, shift };
    const admission = new Admission(store.tables, grounds);
    const answers: OutboxAnswer[] = requests.map((request) => admission.judge(request));
    const next = withFrames(rim, { ...book, tail }, admission.layout.frames);
    admission.keep();
    const swept = sweep(rim, { ...next, ...added(next, admission) });
    return { book: { ...book, tail: swept }, result: { epoch, answers } };
  });
}

/** The tail of a new life of the object: one construction and one boot more, boots only rise. */
export function booted(tail: Tail, now: number): Tail {
  return { ...tail, boot: Math.max(now, tail.boot + 1), constructions: tail.constructions + 1 };
}

function added(tail: Tail, admission: Admission): Partial<Tail> {
  const { accepted, deduplicated, refused } = admission.tally;
  return {
    accepted: tail.accepted + accepted,
    deduplicated: tail.deduplicated + deduplicated,
    refused: tail.refused + refused,
    newProducers: tail.newProducers + admission.newProducers,
    newBatches: tail.newBatches + admission.newBatches,
  };
}

function withFrames(
  { store, buffer, now }: AppendRim,
  book: Book,
  frames: readonly (readonly FrameRequest[])[],
): Tail {
  const { epoch, shift } = lifeOf(book);
  let { tail } = book;
  for (const requests of frames) {
    const row = tail.row + 1;
    const { boot } = tail;
    const bytes = encodeMessage({
      type: "frame",
      frame: { flags: 0, buffer, epoch, boot, fsn: row - shift, voidReason: "", requests },
    });
    const n = requests.reduce((sum, { records }) => sum + records.length, 0);
    store.tables.insertFrame({ row, boot, n, at: now, bytes: bytes.buffer });
    tail = { ...tail, row, bytesIn: tail.bytesIn + bytes.length };
  }
  return tail;
}

/** Batches go after 10 minutes or beyond 10,000, producers after 7 idle days, each a little later than promised. */
function sweep({ store, now }: AppendRim, tail: Tail): Tail {
  let { newBatches, newProducers } = tail;
  if (newBatches >= sweepEvery) {
    store.tables.forgetBatches(now - limits.outboxBatchAgeMsMax, limits.outboxBatchesMax);
    newBatches = 0;
  }
  if (newProducers >= sweepEvery) {
    store.tables.forgetProducers(now - limits.producerIdleMsMax, null);
    newProducers = 0;
  }
  return { ...tail, newBatches, newProducers };
}
