import { invariant } from "../errors/mod.ts";
import {
  onHeard,
  onHeardQuiet,
  onHeardWaiting,
  onLinkDown,
  onLinkWatch,
  onRelinked,
  onSent,
  withLink,
  withoutLink,
} from "./link.ts";
import { onAnswered, onLost, onRefused } from "./posts.ts";
import { arm, end, type EventOf, fill, go, watchdogMs, windowBytesMax } from "./steps.ts";
import type { SenderEvent, SenderMemory, SenderPhase, SenderState, SenderStep } from "./types.ts";

/** The owner ends a POST after this long with `lost`: a half-open connection must not hold the backlog. */
export const postTimeoutMs = 20_000;

/** What a new outbox epoch starts with. */
export const emptyMemory: SenderMemory = { acked: 0, journalId: null, attempts: 0, strikes: null };

/** What the owner knows when its process starts. */
export interface SenderStart {
  /** The highest FSN ever assigned in this epoch, trimmed or not. */
  readonly highest: number;
  /** The newest boot the outbox has taken, ≥ 1 once there is a frame. */
  readonly boot: number;
  /** Whether it posts by itself; otherwise frames wait for a link. */
  readonly pushes: boolean;
  /** Whether the origin's link outlived the process. */
  readonly linked: boolean;
}

/** The sender at the start of a process. A backlog is sent at once, HELLO first: no traffic is needed to drain it (F2). */
export function startSender(memory: SenderMemory, start: SenderStart, nowMs: number): SenderStep {
  const { highest, boot, pushes, linked } = start;
  invariant(memory.acked <= highest, "no FSN is acked that was never assigned");
  const state: SenderState = {
    phase: "idle",
    memory,
    highest,
    boot,
    helloedBoot: 0,
    sentBoot: 0,
    retryAtMs: 0,
    pushes,
    linked,
    flight: [],
    flightBytes: 0,
    credit: windowBytesMax,
    progressAtMs: nowMs,
    closeAtMs: null,
  };
  return memory.acked === highest ? { state, effects: [] } : go(state, nowMs);
}

type Transition<Type extends SenderEvent["type"]> = (
  state: SenderState,
  event: EventOf<Type>,
) => SenderStep;
type Row = { readonly [Type in SenderEvent["type"]]: Transition<Type> };

/** Every event in every phase; the compiler holds the table complete. */
const table: Readonly<Record<SenderPhase, Row>> = {
  idle: {
    appended: (state, event) => go(withAppended(state, event), event.nowMs),
    alarm: stay,
    answered: noPost,
    lost: noPost,
    refused: noPost,
    linkUp: (state) => stay(withLink(state)),
    linkDown: (state) => stay(withoutLink(state)),
    heard: onHeardQuiet,
    sent: notAsked,
    close: (state, event) => end(closing(state, event)),
  },
  sending: {
    appended: (state, event) => stay(withAppended(state, event)),
    alarm: (state, { nowMs }) => ({ state, effects: [arm(state, nowMs + watchdogMs)] }),
    answered: onAnswered,
    lost: onLost,
    refused: onRefused,
    // The POST ends first: two carriers at once would make replays of each other.
    linkUp: (state) => stay(withLink(state)),
    linkDown: (state) => stay(withoutLink(state)),
    heard: onHeardQuiet,
    sent: notAsked,
    close: closeLater,
  },
  waiting: {
    appended: (state, event) => stay(withAppended(state, event)),
    alarm: onDue,
    answered: noPost,
    lost: noPost,
    refused: noPost,
    linkUp: (state, { nowMs }) =>
      state.memory.strikes === null || state.retryAtMs === Infinity
        ? go(withLink(state), nowMs)
        : stay(withLink(state)),
    linkDown: (state) => stay(withoutLink(state)),
    heard: onHeardWaiting,
    sent: notAsked,
    close: closeLater,
  },
  streaming: {
    appended: (state, event) => fill(withAppended(state, event)),
    alarm: onLinkWatch,
    answered: noPost,
    lost: noPost,
    refused: noPost,
    linkUp: onRelinked,
    linkDown: onLinkDown,
    heard: onHeard,
    sent: onSent,
    close: closeLater,
  },
  closed: {
    appended: afterEnd,
    alarm: stay,
    // A POST may outlive the end; what it moved is a replay to the next owner.
    answered: stay,
    lost: stay,
    refused: stay,
    linkUp: (state) => ({
      state,
      effects: [{ type: "dropLink", reason: "the sender has closed" }],
    }),
    linkDown: stay,
    heard: stay,
    sent: notAsked,
    close: stay,
  },
};

/**
 * Go-back-N from acked + 1: by one POST at a time, or over the link that the origin opened, with a window of unacked
 * bytes. Pure: all I/O is in the effects.
 *
 * An FSN is never skipped, nothing above the origin's durable mark is ever trimmed, and a running sender never gives
 * up on the link, only, after four terminal NACKs in at least 5 s, on a frame.
 */
export function stepSender(state: SenderState, event: SenderEvent): SenderStep {
  if (state.closeAtMs !== null && event.type === "alarm" && event.nowMs >= state.closeAtMs) {
    return state.phase === "closed" ? stay(state) : end(state);
  }
  const row = table[state.phase];
  // The event's type picks its own column; TypeScript cannot correlate the two by itself.
  const transition = row[event.type] as (state: SenderState, event: SenderEvent) => SenderStep;
  return transition(state, event);
}

/** This state, and nothing to do. */
function stay(state: SenderState): SenderStep {
  return { state, effects: [] };
}

function noPost(state: SenderState, event: SenderEvent): never {
  invariant(false, `a POST is in flight when it ends: ${event.type} while ${state.phase}`);
}

function notAsked(state: SenderState): never {
  invariant(false, `frames go over a link when they are asked for: sent while ${state.phase}`);
}

function afterEnd(state: SenderState): never {
  invariant(false, `nothing is appended to a sender that is ${state.phase}`);
}

function withAppended(state: SenderState, { highest, boot }: EventOf<"appended">): SenderState {
  invariant(highest > state.highest && boot >= state.boot, "FSNs and boots only rise");
  invariant(state.closeAtMs === null, "nothing is appended to a sender that closes");
  return { ...state, highest, boot };
}

function closing(state: SenderState, { atMs }: EventOf<"close">): SenderState {
  return { ...state, closeAtMs: Math.min(atMs, state.closeAtMs ?? Infinity) };
}

/** Goes on until all is acked or the time is up; at once when it is up already. */
function closeLater(state: SenderState, event: EventOf<"close">): SenderStep {
  const next = closing(state, event);
  if (event.nowMs >= event.atMs) {
    return end(next);
  }
  const { phase, retryAtMs } = next;
  const due = phase === "waiting" ? retryAtMs : event.nowMs + watchdogMs;
  return { state: next, effects: [arm(next, due)] };
}

function onDue(state: SenderState, { nowMs }: EventOf<"alarm">): SenderStep {
  return nowMs < state.retryAtMs
    ? { state, effects: [arm(state, state.retryAtMs)] }
    : go(state, nowMs);
}
