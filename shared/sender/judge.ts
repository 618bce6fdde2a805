import type { ErrorCode } from "../errors/mod.ts";
import { remember } from "./steps.ts";
import type {
  SenderAnswer,
  SenderEffect,
  SenderEvent,
  SenderMemory,
  SenderState,
  Strikes,
} from "./types.ts";

/** A frame is given up at the fourth terminal NACK of its FSN in a row, and not before the first is 5 s old. */
const strikesMax = 4;
const strikesMsMin = 5_000;

/** These say that the two sides disagree on where they are, not that the frame is bad: HELLO again settles it. */
const settledByHello: ReadonlySet<ErrorCode> = new Set([
  "hello_required",
  "frame_gap",
  "stale_outbox_epoch",
]);

/**
 * "restarted": in a new outbox epoch. "moved": the mark rose, or HELLO was answered. "nacked": back off first. "gaveUp":
 * the VOID goes in the frame's place at once. "nothing": the answer changes nothing.
 */
export interface Judged {
  readonly state: SenderState;
  readonly effects: readonly SenderEffect[];
  readonly outcome: "restarted" | "moved" | "nacked" | "gaveUp" | "nothing";
}

type Answered = Extract<SenderEvent, { readonly type: "answered" | "heard" }>;
type Welcome = NonNullable<SenderAnswer["welcome"]>;
type Nack = NonNullable<SenderAnswer["nack"]>;

/** What an answer changes: WELCOME first, since it may end the epoch the rest speaks of, then ACK, then NACK. */
export function judgeAnswer(
  given: SenderState,
  { answer, firstNewerFsn, nowMs }: Answered,
): Judged {
  const { welcome, nack, credit } = answer;
  const before = credit === null ? given : { ...given, credit };
  const restarted = welcome === null ? null : judgeHistory(before, welcome, firstNewerFsn);
  if (restarted !== null) {
    return restarted;
  }
  const welcomed = welcome === null ? before : withWelcome(before, welcome);
  const { state, effects } = advance(
    welcomed,
    Math.max(answer.durable ?? 0, welcome?.durableFsn ?? 0),
  );
  if (nack !== null && nack.fsn > state.memory.acked) {
    return judgeNack(state, effects, nack, nowMs);
  }
  if (state.memory.acked > before.memory.acked || state.helloedBoot > before.helloedBoot) {
    return { state: remember(state, { attempts: 0 }), effects, outcome: "moved" };
  }
  return { state, effects, outcome: "nothing" };
}

/**
 * Compares what the origin has with what it once acknowledged (F3), when they do not fit: a new epoch for the rows it
 * cannot have.
 *
 * - Rewound storage: the origin has applied FSNs this outbox never assigned, or has assigned again since. Rows of boots
 *   newer than any it applied are new; the older rows are the beginning of what it has.
 * - Lost history: the origin has less than it acknowledged. Those rows are trimmed; the rest starts over.
 */
function judgeHistory(
  state: SenderState,
  welcome: Welcome,
  firstNewerFsn: number | null,
): Judged | null {
  const { highest } = state;
  const { acked } = state.memory;
  const { durableFsn, journalId } = welcome;
  if (durableFsn > highest || (firstNewerFsn !== null && durableFsn >= firstNewerFsn)) {
    const fromFsn = firstNewerFsn ?? highest + 1;
    const report = { kind: "rewound", durableFsn, highestFsn: highest, fromFsn } as const;
    return restart(state, fromFsn, journalId, { type: "report", report });
  }
  if (durableFsn < acked) {
    const report = {
      kind: "history_lost",
      fromFsn: durableFsn + 1,
      toFsn: acked,
      journalId,
    } as const;
    return restart(state, acked + 1, journalId, { type: "report", report });
  }
  return null;
}

function restart(
  state: SenderState,
  fromFsn: number,
  journalId: string,
  report: SenderEffect,
): Judged {
  const memory: SenderMemory = { acked: 0, journalId, attempts: 0, strikes: null };
  return {
    state: { ...state, memory, highest: state.highest - fromFsn + 1, helloedBoot: 0, sentBoot: 0 },
    effects: [report, { type: "restartEpoch", fromFsn }],
    outcome: "restarted",
  };
}

/** The WELCOME to a POST is none to the link that came up meanwhile. */
function withWelcome(state: SenderState, { journalId }: Welcome): SenderState {
  const helloed =
    state.linked && state.phase === "sending"
      ? state
      : { ...state, helloedBoot: Math.max(state.helloedBoot, state.sentBoot) };
  return journalId === state.memory.journalId ? helloed : remember(helloed, { journalId });
}

/** Applies a durable mark. One above all that was ever assigned is no mark of these frames: HELLO settles it. */
function advance(
  state: SenderState,
  durable: number,
): { readonly state: SenderState; readonly effects: readonly SenderEffect[] } {
  if (durable > state.highest) {
    return { state: { ...state, helloedBoot: 0 }, effects: [] };
  }
  if (durable <= state.memory.acked) {
    return { state, effects: [] };
  }
  const { strikes } = state.memory;
  return {
    state: remember(state, {
      acked: durable,
      attempts: 0,
      strikes: strikes !== null && durable < strikes.fsn ? strikes : null,
    }),
    effects: [{ type: "trim", throughFsn: durable }],
  };
}

function judgeNack(
  state: SenderState,
  first: readonly SenderEffect[],
  nack: Nack,
  nowMs: number,
): Judged {
  const { fsn, code, message } = nack;
  const terminal = !nack.retryable && !settledByHello.has(code);
  const strikes = terminal ? struck(state.memory.strikes, fsn, nowMs) : state.memory.strikes;
  const count = strikes?.count ?? 0;
  const effects: SenderEffect[] = [
    ...first,
    { type: "report", report: { kind: "nacked", fsn, code, message, strikes: count } },
  ];
  if (
    terminal &&
    strikes !== null &&
    count >= strikesMax &&
    nowMs - strikes.sinceMs >= strikesMsMin
  ) {
    effects.push({ type: "giveUp", fsn, code, message });
    effects.push({ type: "report", report: { kind: "gave_up", fsn, code, message } });
    return { state: remember(state, { strikes: null, attempts: 0 }), effects, outcome: "gaveUp" };
  }
  const helloedBoot = settledByHello.has(code) ? 0 : state.helloedBoot;
  return { state: remember({ ...state, helloedBoot }, { strikes }), effects, outcome: "nacked" };
}

function struck(strikes: Strikes | null, fsn: number, nowMs: number): Strikes {
  return strikes?.fsn === fsn
    ? { ...strikes, count: strikes.count + 1 }
    : { fsn, count: 1, sinceMs: nowMs };
}
