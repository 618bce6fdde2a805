import { invariant } from "../errors/mod.ts";
import { judgeAnswer } from "./judge.ts";
import {
  after,
  arm,
  bytesOf,
  type EventOf,
  fill,
  go,
  grounded,
  landed,
  linkSilenceMsMax,
  wait,
  windowBytesMax,
} from "./steps.ts";
import type { SenderReport, SenderState, SenderStep } from "./types.ts";

/** A link without a history: HELLO comes first on it, and no credit was said. */
export function withLink(state: SenderState): SenderState {
  return { ...state, linked: true, helloedBoot: 0, credit: windowBytesMax };
}

export function withoutLink(state: SenderState): SenderState {
  return { ...state, linked: false, helloedBoot: 0, credit: windowBytesMax };
}

/** The newest link wins: what flew over the one before flies again over this one, from acked + 1. */
export function onRelinked(state: SenderState, { nowMs }: EventOf<"linkUp">): SenderStep {
  return go(grounded(withLink(state)), nowMs);
}

/** What was in flight is in doubt: once more from acked + 1. */
export function onLinkDown(state: SenderState, event: EventOf<"linkDown">): SenderStep {
  const attempts = state.memory.attempts + 1;
  const lost: SenderReport = { kind: "lost", reason: event.reason, attempts };
  const without = grounded(withoutLink(state));
  const next =
    attempts === 1 || !state.pushes
      ? go({ ...without, memory: { ...without.memory, attempts } }, event.nowMs)
      : wait(without, event, 0);
  return after([{ type: "report", report: lost }], next);
}

export function onSent(state: SenderState, { frames }: EventOf<"sent">): SenderStep {
  const last = state.flight.at(-1)?.fsn ?? state.memory.acked;
  invariant(
    frames.length > 0 && frames.every(({ fsn }, i) => fsn === last + 1 + i),
    `frames fly in order, at least one: ${frames.length} came after FSN ${last}`,
  );
  const flight = [...state.flight, ...frames];
  return {
    state: { ...state, flight, flightBytes: state.flightBytes + bytesOf(frames) },
    effects: [],
  };
}

export function onHeard(state: SenderState, event: EventOf<"heard">): SenderStep {
  const judged = judgeAnswer(state, event);
  // After a NACK the origin looks at nothing before the next HELLO: nothing is in flight any more.
  const afresh = { ...judged.state, helloedBoot: 0 };
  switch (judged.outcome) {
    case "restarted":
    case "gaveUp":
      return after(judged.effects, go(afresh, event.nowMs));
    case "nacked":
      return after(judged.effects, wait(afresh, event, 0));
    case "moved":
    case "nothing":
      // A NACK of what is acked, or a mark nobody assigned: HELLO settles it.
      return event.answer.nack !== null || judged.state.helloedBoot < state.helloedBoot
        ? after(judged.effects, wait(afresh, event, 0))
        : after(judged.effects, onward(state, judged.state, event.nowMs));
  }
}

function onward(before: SenderState, judged: SenderState, nowMs: number): SenderStep {
  const welcomed = judged.helloedBoot > before.helloedBoot;
  const acked = judged.memory.acked > before.memory.acked;
  const state = landed({
    ...judged,
    sentBoot: welcomed ? 0 : judged.sentBoot,
    progressAtMs: welcomed || acked ? nowMs : judged.progressAtMs,
  });
  return state.memory.acked === state.highest ? go(state, nowMs) : fill(state);
}

/** While backing off only marks count: what was sent before may become durable late. */
export function onHeardWaiting(state: SenderState, event: EventOf<"heard">): SenderStep {
  const { durable, credit } = event.answer;
  const answer = { welcome: null, durable, nack: null, credit };
  const judged = judgeAnswer(state, { ...event, answer });
  return judged.state.memory.acked === judged.state.highest
    ? after(judged.effects, go(judged.state, event.nowMs))
    : { state: judged.state, effects: judged.effects };
}

/** Nothing of ours is in flight on it. */
export function onHeardQuiet(state: SenderState, { answer }: EventOf<"heard">): SenderStep {
  return { state: { ...state, credit: answer.credit ?? state.credit }, effects: [] };
}

/** A link that acks nothing is no link (F1, F5): its peer has vanished, or stalls behind it. */
export function onLinkWatch(state: SenderState, { nowMs }: EventOf<"alarm">): SenderStep {
  const dueAt = state.progressAtMs + linkSilenceMsMax;
  if (nowMs < dueAt) {
    return { state, effects: [arm(state, dueAt)] };
  }
  const reason = `nothing was acknowledged for ${nowMs - state.progressAtMs} ms`;
  const lost: SenderReport = { kind: "lost", reason, attempts: state.memory.attempts + 1 };
  const next = go(
    grounded(withoutLink({ ...state, memory: { ...state.memory, attempts: lost.attempts } })),
    nowMs,
  );
  return after(
    [
      { type: "dropLink", reason },
      { type: "report", report: lost },
    ],
    next,
  );
}
