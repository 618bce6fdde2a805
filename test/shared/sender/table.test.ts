import { describe, expect, test } from "vitest";
import { limits } from "../../../shared/limits.ts";
import {
  emptyMemory,
  linkSilenceMsMax,
  startSender,
  stepSender,
  windowBytesMax,
  windowFramesMax,
  type FlightFrame,
  type SenderAnswer,
  type SenderEvent,
  type SenderPhase,
  type SenderState,
  type SenderStep,
} from "../../../shared/sender/mod.ts";

/** Every state with every event: what happens, or that it is a bug of the owner. */
const nowMs = 1_000_000;
const random = 0.5;

const nothing: SenderAnswer = { welcome: null, durable: null, nack: null, credit: null };
const frames = (from: number, ...sizes: number[]): FlightFrame[] =>
  sizes.map((bytes, i) => ({ fsn: from + i, bytes }));

/** FSN 1..9 are there, 1..5 are acked; idle: all nine. Twice two frames fly. */
function stateOf(phase: SenderPhase): SenderState {
  const pushing = { highest: 9, boot: 3, pushes: true, linked: false };
  const memory = { ...emptyMemory, acked: 5, journalId: "j" };
  switch (phase) {
    case "idle":
      return startSender({ ...memory, acked: 9 }, pushing, nowMs).state;
    case "sending":
      return startSender(memory, pushing, nowMs).state;
    case "waiting": {
      const { state } = startSender({ ...memory, attempts: 1 }, pushing, nowMs);
      return stepSender(state, events.lost).state;
    }
    case "streaming": {
      const { state } = startSender(memory, { ...pushing, linked: true }, nowMs);
      return stepSender(state, { type: "sent", frames: frames(6, 100, 200), nowMs }).state;
    }
    case "closed": {
      const { state } = startSender(memory, pushing, nowMs);
      return stepSender(state, { ...events.close, atMs: nowMs }).state;
    }
  }
}

type Events = {
  readonly [Type in SenderEvent["type"]]: Extract<SenderEvent, { readonly type: Type }>;
};
const events: Events = {
  appended: { type: "appended", highest: 11, boot: 3, nowMs },
  alarm: { type: "alarm", nowMs: nowMs + 25_000 },
  answered: {
    type: "answered",
    answer: { ...nothing, durable: 7 },
    firstNewerFsn: null,
    nowMs,
    random,
  },
  lost: { type: "lost", reason: "reset", nowMs, random },
  refused: { type: "refused", status: 503, reason: "full", retryAfterMs: 0, nowMs, random },
  linkUp: { type: "linkUp", nowMs },
  linkDown: { type: "linkDown", reason: "reset", nowMs, random },
  heard: { type: "heard", answer: { ...nothing, durable: 7 }, firstNewerFsn: null, nowMs, random },
  sent: { type: "sent", frames: frames(8, 10), nowMs },
  close: { type: "close", atMs: nowMs + 60_000, nowMs },
};

/** `<phase>: <effects>` of the step, or the invariant it breaks. */
function shown(state: SenderState, event: SenderEvent): string {
  let step: SenderStep;
  try {
    step = stepSender(state, event);
  } catch (error) {
    return `throws ${String(error)
      .replace(/^Error: invariant broken: /, "")
      .slice(0, 24)}`;
  }
  const effects = step.effects.map((effect) => {
    switch (effect.type) {
      case "send":
      case "sendOnLink":
        return `${effect.type} ${effect.hello ? "HELLO " : ""}${effect.fromFsn}`;
      case "arm":
        return `arm ${effect.atMs - nowMs}`;
      case "report":
        return effect.report.kind;
      case "trim":
        return `trim ${effect.throughFsn}`;
      case "closed":
        return `closed ${effect.unacked}`;
      case "dropLink":
      case "giveUp":
      case "restartEpoch":
      case "disarm":
        return effect.type;
    }
  });
  return `${step.state.phase}: ${effects.join(", ")}`;
}

const post = "throws a POST is in flight when";
const ask = "throws frames go over a link wh";
const table: Readonly<Record<SenderPhase, Readonly<Record<SenderEvent["type"], string>>>> = {
  idle: {
    appended: "sending: arm 30000, send HELLO 10",
    alarm: "idle: ",
    answered: post,
    lost: post,
    refused: post,
    linkUp: "idle: ",
    linkDown: "idle: ",
    heard: "idle: ",
    sent: ask,
    close: "closed: disarm, closed 0",
  },
  sending: {
    appended: "sending: ",
    alarm: "sending: arm 55000",
    answered: "sending: trim 7, send HELLO 8",
    lost: "sending: lost, send HELLO 6",
    refused: "waiting: refused, arm 125",
    linkUp: "sending: ",
    linkDown: "sending: ",
    heard: "sending: ",
    sent: ask,
    close: "sending: arm 30000",
  },
  waiting: {
    appended: "waiting: ",
    alarm: "sending: arm 55000, send HELLO 6",
    answered: post,
    lost: post,
    refused: post,
    linkUp: "streaming: arm 20000, sendOnLink HELLO 6",
    linkDown: "waiting: ",
    heard: "waiting: trim 7",
    sent: ask,
    close: "waiting: arm 250",
  },
  streaming: {
    appended: "streaming: sendOnLink 8",
    alarm: "sending: dropLink, lost, arm 55000, send HELLO 6",
    answered: post,
    lost: post,
    refused: post,
    linkUp: "streaming: arm 20000, sendOnLink HELLO 6",
    linkDown: "sending: lost, arm 30000, send HELLO 6",
    heard: "streaming: trim 7, sendOnLink 8",
    sent: "streaming: ",
    close: "streaming: arm 30000",
  },
  closed: {
    appended: "throws nothing is appended to a",
    alarm: "closed: ",
    answered: "closed: ",
    lost: "closed: ",
    refused: "closed: ",
    linkUp: "closed: dropLink",
    linkDown: "closed: ",
    heard: "closed: ",
    sent: ask,
    close: "closed: ",
  },
};

describe.each(Object.keys(table) as SenderPhase[])("in state %s", (phase) => {
  test.each(Object.keys(events) as SenderEvent["type"][])("comes %s", (type) => {
    expect(stateOf(phase).phase).toBe(phase);
    expect(shown(stateOf(phase), events[type])).toBe(table[phase][type]);
  });
});

/** A sender on a link alone, with everything acked up to 5, and `highest` appended. */
function linked(highest: number): SenderStep {
  const start = { highest, boot: 3, pushes: false, linked: true };
  return startSender({ ...emptyMemory, acked: 5, journalId: "j" }, start, nowMs);
}
const sent = (state: SenderState, ...flight: FlightFrame[]): SenderState =>
  stepSender(state, { type: "sent", frames: flight, nowMs }).state;
const heard = (answer: Partial<SenderAnswer>, atMs = nowMs): SenderEvent => ({
  ...events.heard,
  answer: { ...nothing, ...answer },
  nowMs: atMs,
});
const welcome = { journalId: "j", durableFsn: 5, latestBoot: 3 };
const terminal = { code: "bad_frame", retryable: false, message: "m" } as const;

describe("the window", () => {
  test("F6 is asked to be filled up to its bytes and no further; what is acked makes room", () => {
    let { state, effects } = linked(9);
    expect(effects.at(-1)).toEqual({
      type: "sendOnLink",
      hello: true,
      fromFsn: 6,
      bytesMax: windowBytesMax,
      framesMax: windowFramesMax,
    });
    state = sent(state, { fsn: 6, bytes: windowBytesMax - 100 }, { fsn: 7, bytes: 100 });
    ({ state, effects } = stepSender(state, heard({ welcome })));
    expect(effects).toEqual([]);
    ({ state, effects } = stepSender(state, heard({ durable: 6 })));
    expect(effects.at(-1)).toEqual({
      type: "sendOnLink",
      hello: false,
      fromFsn: 8,
      bytesMax: windowBytesMax - 100,
      framesMax: windowFramesMax - 1,
    });
    expect(state).toMatchObject({ flight: [{ fsn: 7, bytes: 100 }], flightBytes: 100 });
  });

  test("F6 counts frames too, so that tiny ones do not make it endless", () => {
    const many = frames(6, ...Array.from({ length: windowFramesMax }, () => 1));
    const state = sent(linked(5 + windowFramesMax + 10).state, ...many);
    expect(stepSender(state, heard({ welcome })).effects).toEqual([]);
    expect(stepSender(state, heard({ welcome, durable: 6 })).effects.at(-1)).toMatchObject({
      type: "sendOnLink",
      framesMax: 1,
    });
  });

  test("a credit below what flies stops it; credit 0 still lets one frame fly, so that nothing hangs", () => {
    const full = sent(linked(9).state, { fsn: 6, bytes: 500 });
    const { state, effects } = stepSender(full, heard({ welcome, credit: 400 }));
    expect(effects).toEqual([]);
    const one = stepSender(state, heard({ credit: 0, durable: 6 }));
    expect(one.effects.at(-1)).toMatchObject({ type: "sendOnLink", fromFsn: 7, bytesMax: 0 });
    const flying = sent(one.state, { fsn: 7, bytes: 300 });
    expect(stepSender(flying, heard({ credit: 301 })).effects).toEqual([
      { type: "sendOnLink", hello: false, fromFsn: 8, bytesMax: 1, framesMax: windowFramesMax - 1 },
    ]);
  });

  test("a credit said to a POST bounds the next one", () => {
    const step = stepSender(stateOf("sending"), {
      ...events.answered,
      answer: { ...nothing, durable: 7, credit: 77 },
    });
    expect(step.effects.at(-1)).toMatchObject({ type: "send", fromFsn: 8, bytesMax: 77 });
    expect(limits.pushBytesMax).toBe(windowBytesMax);
  });

  test("frames reported out of their order are a bug of the owner", () => {
    const { state } = linked(9);
    expect(() => sent(state, { fsn: 7, bytes: 1 })).toThrow("frames fly in order");
    expect(() => sent(state)).toThrow("frames fly in order");
  });
});

describe("the link", () => {
  test("F5 a newer one takes over: what flew over the older flies again, HELLO first", () => {
    const state = sent(linked(9).state, ...frames(6, 10, 10, 10));
    const { effects } = stepSender(state, events.linkUp);
    expect(effects.at(-1)).toMatchObject({ type: "sendOnLink", hello: true, fromFsn: 6 });
  });

  test("F5 one that acks nothing for 20 s is dropped; one that does is not", () => {
    let state = sent(linked(9).state, ...frames(6, 10, 10));
    state = stepSender(state, heard({ welcome, durable: 6 }, nowMs + 15_000)).state;
    const alarm = (atMs: number): SenderEvent => ({ type: "alarm", nowMs: atMs });
    const early = stepSender(state, alarm(nowMs + linkSilenceMsMax));
    expect(early.effects).toEqual([{ type: "arm", atMs: nowMs + 15_000 + linkSilenceMsMax }]);
    const late = stepSender(early.state, alarm(nowMs + 15_000 + linkSilenceMsMax));
    expect(late.effects.map((effect) => effect.type)).toEqual(["dropLink", "report", "disarm"]);
    expect(late.state).toMatchObject({ phase: "waiting", linked: false, retryAtMs: Infinity });
  });

  test("a link that comes up is new to the origin: HELLO, whatever was said over the one before or by a POST", () => {
    let { state } = linked(6);
    state = sent(state, { fsn: 6, bytes: 10 });
    ({ state } = stepSender(state, heard({ welcome, durable: 6 })));
    expect(state).toMatchObject({ phase: "idle", helloedBoot: 3 });
    ({ state } = stepSender(state, events.linkUp));
    const first = stepSender(state, { ...events.appended, highest: 7 });
    expect(first.effects.at(-1)).toMatchObject({ type: "sendOnLink", hello: true });
    // It comes up while a POST is in flight: the WELCOME in that one's answer is none to the link.
    ({ state } = stepSender(stateOf("sending"), events.linkUp));
    const answer = { ...nothing, welcome, durable: 7 };
    const second = stepSender(state, { ...events.answered, answer });
    expect(second.state.phase).toBe("streaming");
    expect(second.effects.at(-1)).toMatchObject({ type: "sendOnLink", hello: true, fromFsn: 8 });
  });

  test("one that comes up does not shorten the wait of a frame that was struck", () => {
    let { state } = linked(9);
    state = sent(state, ...frames(6, 10, 10));
    ({ state } = stepSender(state, heard({ welcome, nack: { fsn: 6, ...terminal } })));
    const { retryAtMs } = state;
    const again = stepSender(state, events.linkUp);
    expect(again.effects).toEqual([]);
    const due = stepSender(again.state, { type: "alarm", nowMs: retryAtMs });
    expect(due.effects.at(-1)).toMatchObject({ type: "sendOnLink", hello: true, fromFsn: 6 });
  });

  test("without pushes frames wait for a link, with no alarm, and go when one comes up", () => {
    const start = { highest: 9, boot: 3, pushes: false, linked: false };
    const { state, effects } = startSender({ ...emptyMemory, acked: 5 }, start, nowMs);
    expect(effects).toEqual([{ type: "disarm" }]);
    expect(stepSender(state, events.linkUp).effects.at(-1)).toMatchObject({
      type: "sendOnLink",
      hello: true,
      fromFsn: 6,
    });
  });

  test("all acked: the link stays, nothing flies, and the next frame goes without HELLO", () => {
    let { state, effects } = linked(7);
    state = sent(state, ...frames(6, 10, 10));
    ({ state, effects } = stepSender(state, heard({ welcome, durable: 7 })));
    expect(effects).toEqual([{ type: "trim", throughFsn: 7 }, { type: "disarm" }]);
    expect(state).toMatchObject({ phase: "idle", linked: true, flight: [], flightBytes: 0 });
    ({ state, effects } = stepSender(state, { ...events.appended, highest: 8 }));
    expect(effects.at(-1)).toMatchObject({ type: "sendOnLink", hello: false, fromFsn: 8 });
  });

  test("a new boot waits for the WELCOME of its elder, so that each is compared with what it speaks of", () => {
    let { state, effects } = linked(6);
    state = sent(state, { fsn: 6, bytes: 10 });
    ({ state, effects } = stepSender(state, { ...events.appended, highest: 7, boot: 4 }));
    expect(effects).toEqual([]);
    ({ state, effects } = stepSender(state, heard({ welcome })));
    expect(effects).toEqual([
      expect.objectContaining({ type: "sendOnLink", hello: true, fromFsn: 7 }),
    ]);
  });

  test("a NACK ends the flight: after the wait HELLO again, from acked + 1", () => {
    const state = sent(linked(9).state, ...frames(6, 10, 10, 10));
    const nacked = stepSender(state, heard({ welcome, durable: 6, nack: { fsn: 7, ...terminal } }));
    expect(nacked.effects.map((effect) => effect.type)).toEqual(["trim", "report", "arm"]);
    expect(nacked.state).toMatchObject({ phase: "waiting", flight: [], linked: true });
    // A mark that was on its way still counts, and traffic does not shorten the wait.
    const later = stepSender(nacked.state, { ...events.appended, highest: 12 });
    expect(later.effects).toEqual([]);
    const { state: waiting } = nacked;
    const again = stepSender(waiting, { type: "alarm", nowMs: waiting.retryAtMs });
    expect(again.effects.at(-1)).toMatchObject({ type: "sendOnLink", hello: true, fromFsn: 7 });
  });

  test("the fourth strike gives the frame up at once, and its VOID goes after a HELLO", () => {
    const strikes = { fsn: 6, count: 3, sinceMs: nowMs - 5000 };
    const memory = { acked: 5, journalId: "j", attempts: 0, strikes };
    const start = { highest: 9, boot: 3, pushes: false, linked: true };
    const flying = sent(startSender(memory, start, nowMs).state, ...frames(6, 10, 10));
    const { effects } = stepSender(flying, heard({ welcome, nack: { fsn: 6, ...terminal } }));
    expect(effects.map((effect) => effect.type)).toEqual([
      "report",
      "giveUp",
      "report",
      "arm",
      "sendOnLink",
    ]);
    expect(effects.at(-1)).toMatchObject({ hello: true, fromFsn: 6 });
  });

  test("F3 over the link too: an origin that has less than it acked gets a new epoch, HELLO first", () => {
    const flying = sent(linked(9).state, ...frames(6, 10));
    const lost = { journalId: "other", durableFsn: 2, latestBoot: 0 };
    const { effects, state } = stepSender(flying, heard({ welcome: lost }));
    expect(effects.map((effect) => effect.type)).toEqual([
      "report",
      "restartEpoch",
      "arm",
      "sendOnLink",
    ]);
    expect(effects.at(-1)).toMatchObject({ hello: true, fromFsn: 1 });
    expect(state).toMatchObject({ highest: 4, memory: { acked: 0, journalId: "other" } });
  });

  test("a mark that nobody assigned trims nothing and leads to HELLO after a wait", () => {
    const flying = stepSender(sent(linked(9).state, ...frames(6, 10)), heard({ welcome })).state;
    const { state, effects } = stepSender(flying, heard({ durable: 99 }));
    expect(effects.map((effect) => effect.type)).toEqual(["arm"]);
    const again = stepSender(state, { type: "alarm", nowMs: state.retryAtMs });
    expect(again.effects.at(-1)).toMatchObject({ type: "sendOnLink", hello: true, fromFsn: 6 });
  });
});

describe("closing", () => {
  test("F18 ends when all is acked", () => {
    const closing = stepSender(sent(linked(6).state, ...frames(6, 10)), events.close);
    expect(closing.effects).toEqual([{ type: "arm", atMs: nowMs + 30_000 }]);
    const { state, effects } = stepSender(closing.state, heard({ welcome, durable: 6 }));
    expect(effects).toEqual([
      { type: "trim", throughFsn: 6 },
      { type: "dropLink", reason: "the sender has closed" },
      { type: "disarm" },
      { type: "closed", unacked: 0 },
    ]);
    expect(state.phase).toBe("closed");
  });

  test.each(["sending", "waiting", "streaming"] as const)(
    "F18 ends at its time while %s, and says how much is left to the next owner",
    (phase) => {
      const { state } = stepSender(stateOf(phase), { ...events.close, atMs: nowMs + 100 });
      const { effects } = stepSender(state, { type: "alarm", nowMs: nowMs + 100 });
      expect(effects.at(-1)).toEqual({ type: "closed", unacked: 4 });
    },
  );

  test("the alarm of a closing sender is never later than its end, and nothing is appended to it", () => {
    const { state, effects } = stepSender(stateOf("sending"), { ...events.close, atMs: nowMs + 9 });
    expect(effects).toEqual([{ type: "arm", atMs: nowMs + 9 }]);
    const twice = stepSender(state, { ...events.close, atMs: nowMs + 500 });
    expect(twice.effects).toEqual([{ type: "arm", atMs: nowMs + 9 }]);
    expect(() => stepSender(state, events.appended)).toThrow("closes");
  });
});
