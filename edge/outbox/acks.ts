import { parsePosition } from "../../shared/ids/mod.ts";
import { refusal } from "./refusal.ts";
import { ackedRow, type Store } from "./store.ts";
import type { OutboxAckReply, OutboxRefusal } from "./types.ts";

/**
 * The row of a position of this outbox, of the present epoch or an ended one; of a frame that was given up and replayed, the
 * row it went in again.
 */
export function rowOf(store: Store, buffer: string, text: string): number | OutboxRefusal {
  const position = parsePosition(text);
  const { lives, tail } = store.book;
  const index = lives.findIndex(({ epoch }) => epoch === position?.epoch);
  const life = lives[index];
  if (position === undefined || position.buffer !== buffer || life === undefined) {
    return unknown(text, `outbox ${buffer} has no such epoch`);
  }
  const newest = lives[index + 1]?.encodedFrom ?? tail.row;
  const row = position.fsn + life.shift;
  if (row < 1 || row > newest) {
    return unknown(text, `the epoch's FSNs go to ${newest - life.shift}`);
  }
  return newestRow(store, row);
}

function newestRow(store: Store, row: number): number {
  const again = store.book.drain.counts.framesVoided === 0 ? undefined : store.tables.replayOf(row);
  return again === undefined ? row : newestRow(store, again);
}

function unknown(text: string, why: string): OutboxRefusal {
  return refusal("not_found", `there is no position ${JSON.stringify(text.slice(0, 100))}: ${why}`);
}

/** What is known of a row. An origin answers when it has made a frame durable, so received is not known any earlier. */
export function ackOf(store: Store, row: number): OutboxAckReply {
  const lostThrough = Math.max(...store.book.lives.map((life) => life.lostThrough));
  if (row <= lostThrough) {
    const message = "the frame was acknowledged by an origin that has lost its history";
    return refusal("origin_history_lost", message, {});
  }
  const reason = store.book.drain.dead === 0 ? undefined : store.tables.deadReason(row);
  if (reason !== undefined) {
    return refusal("frame_given_up", `the origin refused the frame for good (${reason})`);
  }
  const durable = row <= ackedRow(store.book);
  return { kind: "state", received: durable, durable };
}

export function isPending(reply: OutboxAckReply): boolean {
  return reply.kind === "state" && !reply.durable;
}
