import { limits } from "../limits.ts";
import { backoffMs } from "./backoff.ts";
import type {
  FlightFrame,
  SenderEffect,
  SenderEvent,
  SenderMemory,
  SenderState,
  SenderStep,
} from "./types.ts";

export type EventOf<Type extends SenderEvent["type"]> = Extract<
  SenderEvent,
  { readonly type: Type }
>;

/** While a POST is in flight the alarm stands this far off; it finds a backlog whose process died. */
export const watchdogMs = 30_000;
/** A link on which frames fly and nothing is acked for this long is dropped: half-open, or stalled behind it. */
export const linkSilenceMsMax = 20_000;
/** Unacked bytes on the link, when the origin gives no smaller credit (F6). */
export const windowBytesMax: number = limits.pushBytesMax;
/** And unacked frames: small ones would make the flight long. */
export const windowFramesMax = 1024;

export function after(first: readonly SenderEffect[], { state, effects }: SenderStep): SenderStep {
  return { state, effects: [...first, ...effects] };
}

export function remember(state: SenderState, change: Partial<SenderMemory>): SenderState {
  return { ...state, memory: { ...state.memory, ...change } };
}

/** The alarm, never later than the end of a sender that is closing. */
export function arm(state: SenderState, atMs: number): SenderEffect {
  const at = Math.min(atMs, state.closeAtMs ?? Infinity);
  return at === Infinity ? { type: "disarm" } : { type: "arm", atMs: at };
}

/** Nothing is in flight, and nothing is waited for: send what there is, by the link if there is one. */
export function go(state: SenderState, nowMs: number): SenderStep {
  if (state.memory.acked === state.highest) {
    return rest(state);
  }
  if (state.linked) {
    const streaming: SenderState = { ...grounded(state), phase: "streaming", progressAtMs: nowMs };
    return after([arm(state, nowMs + linkSilenceMsMax)], fill(streaming));
  }
  return state.pushes ? post(state, nowMs) : hold(state);
}

/** Everything is acked. */
function rest(state: SenderState): SenderStep {
  return state.closeAtMs === null
    ? { state: { ...grounded(state), phase: "idle" }, effects: [{ type: "disarm" }] }
    : end(state);
}

/** The end of a closing sender, whatever is left. */
export function end(state: SenderState): SenderStep {
  const unacked = state.highest - state.memory.acked;
  return {
    state: { ...grounded(state), phase: "closed", linked: false },
    effects: [
      ...(state.linked ? [{ type: "dropLink", reason: "the sender has closed" } as const] : []),
      { type: "disarm" },
      { type: "closed", unacked },
    ],
  };
}

/** The alarm first: what dies between the two effects is found again. */
function post(state: SenderState, nowMs: number): SenderStep {
  return after([arm(state, nowMs + watchdogMs)], postWatched(state));
}

/** A POST while the alarm of the one before still stands. */
export function postWatched(state: SenderState): SenderStep {
  const hello = state.helloedBoot !== state.boot;
  const bytesMax = Math.min(limits.pushBytesMax, state.credit);
  return {
    state: { ...state, phase: "sending", sentBoot: hello ? state.boot : 0 },
    effects: [{ type: "send", hello, fromFsn: state.memory.acked + 1, bytesMax }],
  };
}

/** Until a link comes up. */
function hold(state: SenderState): SenderStep {
  const held: SenderState = { ...grounded(state), phase: "waiting", retryAtMs: Infinity };
  return { state: held, effects: [arm(held, Infinity)] };
}

/** Backs off: full jitter, at least `waitMsMin`. */
export function wait(
  state: SenderState,
  { nowMs, random }: { readonly nowMs: number; readonly random: number },
  waitMsMin: number,
): SenderStep {
  const { attempts } = state.memory;
  const retryAtMs = nowMs + Math.max(waitMsMin, backoffMs(attempts, random));
  const waiting: SenderState = {
    ...grounded(remember(state, { attempts: attempts + 1 })),
    phase: "waiting",
    retryAtMs,
  };
  return { state: waiting, effects: [arm(waiting, retryAtMs)] };
}

/** Nothing is in flight any more, no HELLO waits for its answer. */
export function grounded(state: SenderState): SenderState {
  return { ...state, sentBoot: 0, flight: [], flightBytes: 0 };
}

/**
 * Sends on over the link while the window has room. A boot whose elder's HELLO is unanswered waits for that WELCOME, so
 * that each WELCOME is compared with what it speaks of.
 */
export function fill(state: SenderState): SenderStep {
  const fromFsn = (state.flight.at(-1)?.fsn ?? state.memory.acked) + 1;
  const hello = state.helloedBoot !== state.boot && state.sentBoot !== state.boot;
  const room = Math.min(windowBytesMax, state.credit) - state.flightBytes;
  const framesMax = windowFramesMax - state.flight.length;
  const full = state.flight.length > 0 && (room <= 0 || framesMax <= 0);
  if (fromFsn > state.highest || full || (hello && state.sentBoot !== 0)) {
    return { state, effects: [] };
  }
  return {
    state: hello ? { ...state, sentBoot: state.boot } : state,
    effects: [{ type: "sendOnLink", hello, fromFsn, bytesMax: Math.max(0, room), framesMax }],
  };
}

/** The flight without what is acked. */
export function landed(state: SenderState): SenderState {
  const left = state.flight.findIndex(({ fsn }) => fsn > state.memory.acked);
  const flight = left < 0 ? [] : state.flight.slice(left);
  return { ...state, flight, flightBytes: bytesOf(flight) };
}

export function bytesOf(flight: readonly FlightFrame[]): number {
  return flight.reduce((sum, { bytes }) => sum + bytes, 0);
}
