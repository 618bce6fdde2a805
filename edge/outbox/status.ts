import type { DrainRate } from "./drainRate.ts";
import { healthOf } from "./health.ts";
import type { Push } from "./push.ts";
import { ackedRow, bytesKept, framesKept, type Store } from "./store.ts";
import type { OutboxStatus } from "./types.ts";

/** What the outbox can say of itself without writing (F14). */
export function statusOf(of: {
  readonly buffer: string;
  readonly store: Store;
  readonly push: Push;
  readonly rate: DrainRate;
  readonly now: number;
}): OutboxStatus {
  const { buffer, store, push, rate, now } = of;
  const { book, tables } = store;
  const { tail, drain, lives } = book;
  const life = lives.at(-1);
  const shift = life?.shift ?? 0;
  const frames = framesKept(book);
  const { accepted, deduplicated, refused } = tail;
  const { acknowledged, dead, memory, counts } = drain;
  const oldestUnackedMs = frames === 0 ? 0 : Math.max(0, now - (tables.oldestAt() ?? now));
  const { fault } = push;
  return {
    buffer,
    epoch: life?.epoch ?? "",
    boot: tail.boot,
    highestFsn: tail.row - shift,
    acked: ackedRow(book) - shift,
    frames,
    bytes: bytesKept(book),
    oldestUnackedMs,
    ledger: {
      accepted,
      deduplicated,
      refused,
      inFrames: accepted - acknowledged - dead,
      acknowledged,
      dead,
    },
    attempts: memory.attempts,
    strikes: memory.strikes?.count ?? 0,
    lastError: fault ?? drain.lastError,
    health: healthOf({ oldestUnackedMs, fault, lastError: drain.lastError }),
    link: {
      ...counts,
      framesSent: push.framesSent,
      framesReplayed: push.framesReplayed,
      bytesPerSecond: Math.round(rate.perSecond(now)),
    },
    endedEpochs: lives.slice(0, -1).map(({ epoch, ending, lostThrough, shift: before }) => ({
      epoch,
      ending: ending ?? "rewound",
      lost: lostThrough > 0 ? { from: 1, to: lostThrough - before } : null,
    })),
    constructions: tail.constructions,
  };
}
