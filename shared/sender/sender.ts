import { invariant } from "../errors/mod.ts";
import { backoffMs } from "./backoff.ts";
import { judgeAnswer } from "./judge.ts";
import type {
  SenderEffect,
  SenderEvent,
  SenderMemory,
  SenderPhase,
  SenderReport,
  SenderState,
  SenderStep,
} from "./types.ts";

/** The owner ends a POST after this long with `lost`: a half-open connection must not hold the backlog. */
export const postTimeoutMs = 20_000;

/** While a POST is in flight the alarm stands this far off; it finds a backlog whose process died. */
const watchdogMs = 30_000;

/** What a new outbox epoch starts with. */
export const emptyMemory: SenderMemory = { acked: 0, journalId: null, attempts: 0, strikes: null };

/**
 * The sender at the start of a process. A backlog is sent at once, HELLO first: no traffic is needed to drain it (F2).
 *
 * @param highest the highest FSN ever assigned in this epoch, trimmed or not
 * @param boot the newest boot the outbox has taken, ≥ 1 once there is a frame
 */
export function startSender(
  memory: SenderMemory,
  highest: number,
  boot: number,
  nowMs: number,
): SenderStep {
  invariant(memory.acked <= highest, "no FSN is acked that was never assigned");
  const state: SenderState = {
    phase: "idle",
    memory,
    highest,
    boot,
    helloedBoot: 0,
    sentBoot: 0,
    retryAtMs: 0,
  };
  return memory.acked === highest ? { state, effects: [] } : sendWatched(state, nowMs);
}

type EventOf<Type extends SenderEvent["type"]> = Extract<SenderEvent, { readonly type: Type }>;
type Transition<Type extends SenderEvent["type"]> = (
  state: SenderState,
  event: EventOf<Type>,
) => SenderStep;
type Row = { readonly [Type in SenderEvent["type"]]: Transition<Type> };

/** Every event in every phase; the compiler holds the table complete. */
const table: Readonly<Record<SenderPhase, Row>> = {
  idle: {
    appended: (state, event) => sendWatched(withAppended(state, event), event.nowMs),
    alarm: (state) => ({ state, effects: [] }),
    answered: noPost,
    lost: noPost,
    refused: noPost,
  },
  sending: {
    appended: (state, event) => ({ state: withAppended(state, event), effects: [] }),
    alarm: (state, { nowMs }) => ({ state, effects: [{ type: "arm", atMs: nowMs + watchdogMs }] }),
    answered: onAnswered,
    lost: onLost,
    refused: onRefused,
  },
  waiting: {
    appended: (state, event) => ({ state: withAppended(state, event), effects: [] }),
    alarm: onDue,
    answered: noPost,
    lost: noPost,
    refused: noPost,
  },
};

/**
 * Go-back-N from acked + 1 with one POST in flight. Pure: all I/O is in the effects.
 *
 * An FSN is never skipped, nothing above the origin's durable mark is ever trimmed, and a running sender never gives
 * up on the link, only, after four terminal NACKs in at least 5 s, on a frame.
 */
export function stepSender(state: SenderState, event: SenderEvent): SenderStep {
  const row = table[state.phase];
  // The event's type picks its own column; TypeScript cannot correlate the two by itself.
  const transition = row[event.type] as (state: SenderState, event: SenderEvent) => SenderStep;
  return transition(state, event);
}

function noPost(state: SenderState, event: SenderEvent): never {
  invariant(false, `a POST is in flight when it ends: ${event.type} while ${state.phase}`);
}

function withAppended(state: SenderState, { highest, boot }: EventOf<"appended">): SenderState {
  invariant(highest > state.highest && boot >= state.boot, "FSNs and boots only rise");
  return { ...state, highest, boot };
}

function onDue(state: SenderState, { nowMs }: EventOf<"alarm">): SenderStep {
  return nowMs < state.retryAtMs
    ? { state, effects: [{ type: "arm", atMs: state.retryAtMs }] }
    : sendWatched(state, nowMs);
}

function onAnswered(state: SenderState, event: EventOf<"answered">): SenderStep {
  const judged = judgeAnswer(state, event);
  switch (judged.next) {
    case "send":
      return judged.state.memory.acked === judged.state.highest
        ? {
            state: { ...judged.state, phase: "idle", sentBoot: 0 },
            effects: [...judged.effects, { type: "disarm" }],
          }
        : after(judged.effects, send(judged.state));
    case "wait":
      return after(judged.effects, wait(judged.state, event, 0));
  }
}

/** The first try after a loss is immediate: most losses are one broken connection. */
function onLost(state: SenderState, event: EventOf<"lost">): SenderStep {
  const attempts = state.memory.attempts + 1;
  const lost: SenderReport = { kind: "lost", reason: event.reason, attempts };
  if (attempts === 1) {
    const again = { ...state, memory: { ...state.memory, attempts } };
    return after([{ type: "report", report: lost }], send(again));
  }
  return after([{ type: "report", report: lost }], wait(state, event, 0));
}

function onRefused(state: SenderState, event: EventOf<"refused">): SenderStep {
  const attempts = state.memory.attempts + 1;
  const refused: SenderReport = {
    kind: "refused",
    status: event.status,
    reason: event.reason,
    attempts,
  };
  return after([{ type: "report", report: refused }], wait(state, event, event.retryAfterMs));
}

function after(first: readonly SenderEffect[], { state, effects }: SenderStep): SenderStep {
  return { state, effects: [...first, ...effects] };
}

function send(state: SenderState): SenderStep {
  const hello = state.helloedBoot !== state.boot;
  return {
    state: { ...state, phase: "sending", sentBoot: hello ? state.boot : 0 },
    effects: [{ type: "send", hello, fromFsn: state.memory.acked + 1 }],
  };
}

/** The alarm first: what dies between the two effects is found again. */
function sendWatched(state: SenderState, nowMs: number): SenderStep {
  return after([{ type: "arm", atMs: nowMs + watchdogMs }], send(state));
}

function wait(
  state: SenderState,
  { nowMs, random }: { readonly nowMs: number; readonly random: number },
  waitMsMin: number,
): SenderStep {
  const { attempts } = state.memory;
  const retryAtMs = nowMs + Math.max(waitMsMin, backoffMs(attempts, random));
  const memory = { ...state.memory, attempts: attempts + 1 };
  return {
    state: { ...state, phase: "waiting", memory, retryAtMs, sentBoot: 0 },
    effects: [{ type: "arm", atMs: retryAtMs }],
  };
}
