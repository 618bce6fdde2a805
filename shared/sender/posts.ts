import { judgeAnswer } from "./judge.ts";
import { after, type EventOf, go, postWatched, wait } from "./steps.ts";
import type { SenderReport, SenderState, SenderStep } from "./types.ts";

/** What a POST's end changes. */
export function onAnswered(state: SenderState, event: EventOf<"answered">): SenderStep {
  const judged = judgeAnswer(state, event);
  switch (judged.outcome) {
    case "restarted":
    case "moved":
    case "gaveUp":
      return after(judged.effects, onward(judged.state, event.nowMs));
    case "nacked":
      return after(judged.effects, wait(judged.state, event, 0));
    case "nothing": {
      const attempts = judged.state.memory.attempts + 1;
      const stalled: SenderReport = { kind: "stalled", attempts };
      return after(
        [...judged.effects, { type: "report", report: stalled }],
        wait(judged.state, event, 0),
      );
    }
  }
}

/** The first try after a loss is immediate: most losses are one broken connection. */
export function onLost(state: SenderState, event: EventOf<"lost">): SenderStep {
  const attempts = state.memory.attempts + 1;
  const lost: SenderReport = { kind: "lost", reason: event.reason, attempts };
  if (attempts === 1) {
    const again = { ...state, memory: { ...state.memory, attempts } };
    return after([{ type: "report", report: lost }], onward(again, event.nowMs));
  }
  return after([{ type: "report", report: lost }], wait(state, event, 0));
}

export function onRefused(state: SenderState, event: EventOf<"refused">): SenderStep {
  const attempts = state.memory.attempts + 1;
  const refused: SenderReport = {
    kind: "refused",
    status: event.status,
    reason: event.reason,
    attempts,
  };
  return after([{ type: "report", report: refused }], wait(state, event, event.retryAfterMs));
}

/** The next POST under the alarm of the one before, or whatever else is next. */
function onward(state: SenderState, nowMs: number): SenderStep {
  const more = state.memory.acked < state.highest;
  return more && !state.linked && state.pushes
    ? postWatched(state)
    : go({ ...state, sentBoot: 0 }, nowMs);
}
