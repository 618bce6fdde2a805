import { encodeMessage, frameFlag } from "../../shared/frame/mod.ts";
import type { EffectOf, SenderEffect, SenderReport, SenderStep } from "../../shared/sender/mod.ts";
import type { Drain, LinkCounts } from "./rows.ts";
import { ackedRow, lifeOf, type Book, type Store } from "./store.ts";

/** What a step did to the rows. */
export interface Applied {
  readonly trimmedBytes: number;
  /** Rows up to this need no more waiting: acknowledged, given up or lost. */
  readonly settledRow: number;
}

/** Effects that write nothing. */
const outward: ReadonlySet<SenderEffect["type"]> = new Set([
  "arm",
  "disarm",
  "send",
  "sendOnLink",
  "dropLink",
  "closed",
]);

/** Writes a step down in one transaction: its memory, and what it does to the frames. Nothing to write: no transaction. */
export function applyEffects(store: Store, buffer: string, step: SenderStep, now: number): Applied {
  const { state, effects } = step;
  const before = store.book;
  const idle = effects.every(({ type }) => outward.has(type));
  if (idle && state.memory === before.drain.memory) {
    return { trimmedBytes: 0, settledRow: ackedRow(before) };
  }
  return store.change((book) => {
    let settledRow = 0;
    let next = book;
    for (const effect of effects) {
      switch (effect.type) {
        case "trim":
          next = trimmed(store, next, effect.throughFsn + lifeOf(next).shift);
          break;
        case "giveUp":
          settledRow = effect.fsn + lifeOf(next).shift;
          next = givenUp(store, buffer, next, { effect, now });
          break;
        case "restartEpoch":
          next = restarted(store, next, effect, effects);
          break;
        case "report":
          next = withDrain(next, reported(next.drain, effect.report));
          break;
        case "arm":
        case "disarm":
        case "send":
        case "sendOnLink":
        case "dropLink":
        case "closed":
          break;
      }
    }
    next = withDrain(next, { memory: state.memory });
    const trimmedBytes = next.drain.bytesOut - book.drain.bytesOut;
    return {
      book: next,
      result: { trimmedBytes, settledRow: Math.max(settledRow, ackedRow(next)) },
    };
  });
}

function withDrain(book: Book, change: Partial<Drain>): Book {
  return { ...book, drain: { ...book.drain, ...change } };
}

function counted(drain: Drain, change: Partial<LinkCounts>): Pick<Drain, "counts"> {
  return { counts: { ...drain.counts, ...change } };
}

function trimmed(store: Store, book: Book, row: number): Book {
  const { drain } = book;
  const { frames, records, bytes } = store.tables.trim(row);
  return withDrain(book, {
    bytesOut: drain.bytesOut + bytes,
    acknowledged: drain.acknowledged + records,
    lastError: null,
    ...counted(drain, { framesAcked: drain.counts.framesAcked + frames }),
  });
}

/** The frame goes to `dead`, a VOID frame takes its place. A VOID frame itself is never given up. */
function givenUp(
  store: Store,
  buffer: string,
  book: Book,
  { effect, now }: { readonly effect: EffectOf<"giveUp">; readonly now: number },
): Book {
  const { epoch, shift } = lifeOf(book);
  const { fsn, code } = effect;
  const row = fsn + shift;
  const frame = store.tables.frame(row);
  if (frame === undefined || store.tables.deadReason(row) !== undefined) {
    return book;
  }
  const { boot, n, bytes } = frame;
  const message = encodeMessage({
    type: "frame",
    frame: { flags: frameFlag.void, buffer, epoch, boot, fsn, voidReason: code, requests: [] },
  });
  store.tables.giveUp({ row, epoch, fsn, n, at: now, reason: code, bytes }, message.buffer);
  const { drain } = book;
  return withDrain(book, {
    bytesOut: drain.bytesOut + bytes.byteLength - message.length,
    dead: drain.dead + n,
    ...counted(drain, { framesVoided: drain.counts.framesVoided + 1 }),
  });
}

/** Rows below are done with: the origin has them, or they were acknowledged by one that lost them. */
function restarted(
  store: Store,
  book: Book,
  { fromFsn }: EffectOf<"restartEpoch">,
  effects: readonly SenderEffect[],
): Book {
  const through = fromFsn - 1 + lifeOf(book).shift;
  const lost = effects.some(
    (each) => each.type === "report" && each.report.kind === "history_lost",
  );
  const ending = lost ? "origin_history_lost" : "rewound";
  const lives = store.renewed(book.lives, ending, through, book.tail.row);
  const { records, bytes } = store.tables.trim(through);
  const { drain } = book;
  return withDrain(
    { ...book, lives },
    { bytesOut: drain.bytesOut + bytes, acknowledged: drain.acknowledged + records },
  );
}

function reported(drain: Drain, report: SenderReport): Partial<Drain> {
  const { counts } = drain;
  switch (report.kind) {
    case "lost":
    case "refused":
      return { lastError: report.reason, ...counted(drain, { failures: counts.failures + 1 }) };
    case "stalled":
      return {
        lastError: "the origin's answer moved nothing",
        ...counted(drain, { stalls: counts.stalls + 1 }),
      };
    case "nacked": {
      const { code, message } = report;
      const nacks = { ...counts.nacks, [code]: (counts.nacks[code] ?? 0) + 1 };
      return { lastError: `${code}: ${message}`, ...counted(drain, { nacks }) };
    }
    case "gave_up":
    case "history_lost":
    case "rewound":
      return {};
  }
}
