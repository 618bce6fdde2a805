import { decodeMessages, encodeMessage, type FrameRequest } from "../../shared/frame/mod.ts";
import { refusal } from "./refusal.ts";
import type { DeadRow } from "./rows.ts";
import { lifeOf, type Book, type Store } from "./store.ts";
import type { DeadFrame, DeadLetter, OutboxRefusal } from "./types.ts";

const listMax = 100;

/** The frames given up and not replayed, oldest first, those after `row`; at most 100. */
export function deadFrames(store: Store, after: number): readonly DeadFrame[] {
  return isUsed(store) ? store.tables.deadAfter(after, listMax).map(shown) : [];
}

/** One of them with its records. */
export function deadLetter(store: Store, row: number): DeadLetter | OutboxRefusal {
  const dead = isUsed(store) ? store.tables.dead(row) : undefined;
  if (dead === undefined) {
    return notThere(row);
  }
  const requests = requestsOf(dead);
  return { ...shown(dead), kind: "dead", readable: requests !== null, requests: requests ?? [] };
}

/**
 * Sends a frame that was given up once more, as a new frame behind all others, under its old producers and seqs: what the
 * origin has of it already is a duplicate there. One transaction; the position the client holds goes on to name it.
 */
export function replayDead(
  store: Store,
  buffer: string,
  { row, now }: { readonly row: number; readonly now: number },
): { readonly kind: "replayed"; readonly fsn: number } | OutboxRefusal {
  const dead = isUsed(store) ? store.tables.dead(row) : undefined;
  if (dead === undefined) {
    return notThere(row);
  }
  const requests = requestsOf(dead);
  if (requests === null) {
    return refusal("bad_frame", `the frame at row ${row} cannot be read: only its bytes are kept`);
  }
  return store.change((book) => {
    const { epoch, shift } = lifeOf(book);
    const again = book.tail.row + 1;
    const fsn = again - shift;
    const { boot } = book.tail;
    const frame = { flags: 0, buffer, epoch, boot, fsn, voidReason: "", requests };
    const { buffer: bytes } = encodeMessage({ type: "frame", frame });
    store.tables.insertFrame({ row: again, boot, n: dead.n, at: now, bytes });
    store.tables.replayed(row, again);
    return {
      book: resent(book, again, dead.n, bytes.byteLength),
      result: { kind: "replayed", fsn },
    };
  });
}

/** The records count as in frames again: accepted = in frames + acknowledged + dead. */
function resent(book: Book, row: number, n: number, bytes: number): Book {
  const { tail, drain } = book;
  return {
    ...book,
    tail: { ...tail, row, bytesIn: tail.bytesIn + bytes },
    drain: { ...drain, dead: drain.dead - n },
  };
}

function isUsed(store: Store): boolean {
  return store.book.lives.length > 0;
}

function notThere(row: number): OutboxRefusal {
  return refusal("not_found", `no frame given up stands at row ${row}, or it was replayed`);
}

function shown({ row, epoch, fsn, n, at, reason, bytes }: DeadRow): DeadFrame {
  return { row, epoch, fsn, records: n, at, reason, bytes: bytes.byteLength };
}

/** Null for bytes that are no frame: perhaps why it was given up. */
function requestsOf({ bytes }: DeadRow): readonly FrameRequest[] | null {
  try {
    const [message] = decodeMessages(new Uint8Array(bytes));
    return message?.type === "frame" ? message.frame.requests : null;
  } catch {
    return null;
  }
}
