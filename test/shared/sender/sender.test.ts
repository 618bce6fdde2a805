import { describe, expect, test } from "vitest";
import { limits } from "../../../shared/limits.ts";
import {
  emptyMemory,
  readAnswer,
  startSender,
  stepSender,
  type SenderEffect,
  type SenderEvent,
  type SenderState,
} from "../../../shared/sender/mod.ts";

const nowMs = 50_000;
/** As an outbox of the push carrier starts. */
const start = { highest: 0, boot: 1, pushes: true, linked: false };

/** The effects of events in a row, from a sender that has everything acked up to `acked`. */
function run(
  acked: number,
  events: readonly SenderEvent[],
): { state: SenderState; effects: readonly SenderEffect[] } {
  let step = startSender(
    { ...emptyMemory, acked, journalId: "j" },
    { ...start, highest: acked, boot: 1 },
    nowMs,
  );
  for (const event of events) {
    step = stepSender(step.state, event);
  }
  return step;
}

const appended = (highest: number, boot = 1): SenderEvent => ({
  type: "appended",
  highest,
  boot,
  nowMs,
});
const lost = (random = 0.5): SenderEvent => ({ type: "lost", reason: "reset", nowMs, random });
const alarm = (atMs: number): SenderEvent => ({ type: "alarm", nowMs: atMs });

type Answer = Extract<SenderEvent, { type: "answered" }>["answer"];
function answered(
  answer: Partial<Answer>,
  firstNewerFsn: number | null = null,
  atMs = nowMs,
): SenderEvent {
  const full = { welcome: null, durable: null, nack: null, credit: null, ...answer };
  return { type: "answered", answer: full, firstNewerFsn, nowMs: atMs, random: 0.5 };
}
const welcome = (durableFsn: number, journalId = "j", latestBoot = 1): Answer["welcome"] => ({
  journalId,
  durableFsn,
  latestBoot,
});
const nack = (fsn: number, retryable: boolean): Answer["nack"] => ({
  fsn,
  code: retryable ? "disk_full" : "bad_frame",
  retryable,
  message: "m",
});

describe("the course of things", () => {
  test("F4 an empty outbox does nothing, and an alarm that comes late does nothing either", () => {
    expect(run(7, []).effects).toEqual([]);
    expect(run(7, [alarm(nowMs)])).toMatchObject({ state: { phase: "idle" }, effects: [] });
  });

  test("the first frame goes out at once with a HELLO, under a watchdog", () => {
    expect(run(7, [appended(8)]).effects).toEqual([
      { type: "arm", atMs: nowMs + 30_000 },
      { type: "send", hello: true, fromFsn: 8, bytesMax: limits.pushBytesMax },
    ]);
  });

  test("F2 a backlog goes out at the start, with no new traffic", () => {
    expect(
      startSender({ ...emptyMemory, acked: 3 }, { ...start, highest: 9, boot: 4 }, nowMs).effects,
    ).toEqual([
      { type: "arm", atMs: nowMs + 30_000 },
      { type: "send", hello: true, fromFsn: 4, bytesMax: limits.pushBytesMax },
    ]);
  });

  test("an ack of everything trims and disarms; of a part, trims and sends the rest without HELLO", () => {
    expect(run(7, [appended(9), answered({ welcome: welcome(7), durable: 9 })]).effects).toEqual([
      { type: "trim", throughFsn: 9 },
      { type: "disarm" },
    ]);
    expect(run(7, [appended(9), answered({ welcome: welcome(7), durable: 8 })]).effects).toEqual([
      { type: "trim", throughFsn: 8 },
      { type: "send", hello: false, fromFsn: 9, bytesMax: limits.pushBytesMax },
    ]);
  });

  test("a WELCOME that is ahead trims: the answer to an earlier POST was lost", () => {
    expect(run(7, [appended(9), answered({ welcome: welcome(8) })]).effects).toEqual([
      { type: "trim", throughFsn: 8 },
      { type: "send", hello: false, fromFsn: 9, bytesMax: limits.pushBytesMax },
    ]);
  });

  test("frames appended while one POST is in flight wait for its answer", () => {
    expect(run(7, [appended(8), appended(9)]).effects).toEqual([]);
  });

  test("a boot taken while its elder's HELLO was in flight says HELLO for itself", () => {
    const { effects } = run(7, [
      appended(8),
      appended(9, 2),
      answered({ welcome: welcome(7), durable: 8 }),
    ]);
    expect(effects.at(-1)).toEqual({
      type: "send",
      hello: true,
      fromFsn: 9,
      bytesMax: limits.pushBytesMax,
    });
  });

  test("the watchdog finds a POST in flight and only stays on guard", () => {
    expect(run(7, [appended(8), alarm(nowMs + 30_000)]).effects).toEqual([
      { type: "arm", atMs: nowMs + 60_000 },
    ]);
  });

  test("an answer while no POST is in flight is a bug of the owner", () => {
    expect(() => run(7, [lost()])).toThrow(
      "invariant broken: a POST is in flight when it ends: lost while idle",
    );
  });
});

describe("failures", () => {
  test("the first try after a loss is immediate, then it backs off with full jitter to 60 s", () => {
    let { state, effects } = run(7, [appended(8), lost()]);
    expect(effects).toEqual([
      { type: "report", report: { kind: "lost", reason: "reset", attempts: 1 } },
      { type: "send", hello: true, fromFsn: 8, bytesMax: limits.pushBytesMax },
    ]);
    const waits: number[] = [];
    for (let i = 0; i < 12; i++) {
      ({ state, effects } = stepSender(state, lost(0.999)));
      const last = effects.at(-1);
      expect(last?.type).toBe("arm");
      waits.push(last?.type === "arm" ? last.atMs - nowMs : -1);
      ({ state } = stepSender(state, alarm(state.retryAtMs)));
    }
    expect(waits).toEqual([
      499, 999, 1998, 3996, 7992, 15984, 31968, 59940, 59940, 59940, 59940, 59940,
    ]);
    expect(stepSender(state, lost(0)).effects.at(-1)).toEqual({ type: "arm", atMs: nowMs });
  });

  test("an alarm before its time is put back, traffic does not shorten the wait", () => {
    const { state } = run(7, [appended(8), lost(), lost(0.5)]);
    expect(stepSender(state, alarm(state.retryAtMs - 1)).effects).toEqual([
      { type: "arm", atMs: state.retryAtMs },
    ]);
    expect(stepSender(state, appended(9)).effects).toEqual([]);
  });

  test("Retry-After is the least wait after a refusal", () => {
    const refused: SenderEvent = {
      type: "refused",
      status: 503,
      reason: "r",
      retryAfterMs: 9000,
      nowMs,
      random: 0.5,
    };
    expect(run(7, [appended(8), refused]).effects).toEqual([
      { type: "report", report: { kind: "refused", status: 503, reason: "r", attempts: 1 } },
      { type: "arm", atMs: nowMs + 9000 },
    ]);
  });

  test("an answer that says nothing is a stall, not a reason to hurry", () => {
    const { state, effects } = run(7, [
      appended(8),
      answered({ welcome: welcome(7) }),
      answered({}),
    ]);
    expect(effects).toEqual([
      { type: "report", report: { kind: "stalled", attempts: 1 } },
      { type: "arm", atMs: nowMs + 125 },
    ]);
    expect(state.phase).toBe("waiting");
  });

  test("progress forgets the failures before", () => {
    const { state } = run(7, [appended(9), lost(), answered({ welcome: welcome(7), durable: 8 })]);
    expect(state.memory).toEqual({ acked: 8, journalId: "j", attempts: 0, strikes: null });
  });

  test("an ack above every FSN ever assigned trims nothing and asks again with HELLO", () => {
    const { state, effects } = run(7, [
      appended(8),
      answered({ welcome: welcome(7) }),
      answered({ durable: 12 }),
    ]);
    expect(effects.map((effect) => effect.type)).toEqual(["report", "arm"]);
    expect(stepSender(state, alarm(state.retryAtMs)).effects.at(-1)).toEqual({
      type: "send",
      hello: true,
      fromFsn: 8,
      bytesMax: limits.pushBytesMax,
    });
  });
});

describe("NACKs", () => {
  /** The same NACK of FSN 8 again and again, `stepMs` apart, until it is given up; after how many that was. */
  function strikesUntilGivenUp(stepMs: number): number {
    let { state } = run(7, [appended(8), answered({ welcome: welcome(7) })]);
    for (let count = 1; count < 100; count++) {
      const step = stepSender(
        state,
        answered({ nack: nack(8, false) }, null, nowMs + (count - 1) * stepMs),
      );
      if (step.effects.some((effect) => effect.type === "giveUp")) {
        return count;
      }
      ({ state } = stepSender(step.state, alarm(step.state.retryAtMs)));
    }
    return Infinity;
  }

  test("a terminal one is given up at the fourth strike, not before 5 s after the first", () => {
    expect(strikesUntilGivenUp(10_000)).toBe(4);
    expect(strikesUntilGivenUp(1_667)).toBe(4);
    expect(strikesUntilGivenUp(1_000)).toBe(6);
    expect(strikesUntilGivenUp(100)).toBe(51);
  });

  test("giving up goes on at once, with the VOID in its place", () => {
    const strikes = { fsn: 8, count: 3, sinceMs: nowMs - 5_000 };
    const started = startSender(
      { acked: 7, journalId: "j", attempts: 3, strikes },
      { ...start, highest: 9, boot: 1 },
      nowMs,
    );
    const { state, effects } = stepSender(
      started.state,
      answered({ welcome: welcome(7), nack: nack(8, false) }),
    );
    expect(effects).toEqual([
      {
        type: "report",
        report: { kind: "nacked", fsn: 8, code: "bad_frame", message: "m", strikes: 4 },
      },
      { type: "giveUp", fsn: 8, code: "bad_frame", message: "m" },
      { type: "report", report: { kind: "gave_up", fsn: 8, code: "bad_frame", message: "m" } },
      { type: "send", hello: false, fromFsn: 8, bytesMax: limits.pushBytesMax },
    ]);
    expect(state.memory.strikes).toBeNull();
  });

  test("retriable NACKs and losses neither strike nor forgive", () => {
    const events = [
      appended(8),
      answered({ welcome: welcome(7), nack: nack(8, false) }),
      alarm(nowMs + 60_000),
      answered({ nack: nack(8, true) }),
      alarm(nowMs + 60_000),
      lost(),
    ];
    expect(run(7, events).state.memory.strikes).toEqual({ fsn: 8, count: 1, sinceMs: nowMs });
  });

  test("only an ack at or beyond the FSN clears its strikes", () => {
    const memory = {
      acked: 7,
      journalId: "j",
      attempts: 0,
      strikes: { fsn: 9, count: 2, sinceMs: 0 },
    };
    const started = startSender(memory, { ...start, highest: 10, boot: 1 }, nowMs).state;
    expect(stepSender(started, answered({ durable: 8 })).state.memory.strikes).toEqual(
      memory.strikes,
    );
    expect(stepSender(started, answered({ durable: 9 })).state.memory.strikes).toBeNull();
  });

  test.each(["hello_required", "frame_gap", "stale_outbox_epoch"] as const)(
    "%s asks again with HELLO and is no strike, retriable or not",
    (code) => {
      const refusal = { fsn: 8, code, retryable: false, message: "" };
      const { state } = run(7, [
        appended(8),
        answered({ welcome: welcome(7) }),
        answered({ nack: refusal }),
      ]);
      expect(state.memory.strikes).toBeNull();
      expect(stepSender(state, alarm(state.retryAtMs)).effects.at(-1)).toEqual({
        type: "send",
        hello: true,
        fromFsn: 8,
        bytesMax: limits.pushBytesMax,
      });
    },
  );

  test("what the same answer acks is trimmed first; a NACK of what is acked is none", () => {
    const { effects } = run(7, [
      appended(9),
      answered({ welcome: welcome(7), durable: 8, nack: nack(9, true) }),
    ]);
    expect(effects.map((effect) => effect.type)).toEqual(["trim", "report", "arm"]);
    const stale = run(7, [
      appended(9),
      answered({ welcome: welcome(7), durable: 9, nack: nack(8, false) }),
    ]);
    expect(stale.effects).toEqual([{ type: "trim", throughFsn: 9 }, { type: "disarm" }]);
  });
});

describe("F3 histories that do not fit", () => {
  test("the origin has less than it acked: the loss is named, the rest starts a new epoch", () => {
    const { state, effects } = run(7, [appended(9), answered({ welcome: welcome(2, "other") })]);
    expect(effects).toEqual([
      {
        type: "report",
        report: { kind: "history_lost", fromFsn: 3, toFsn: 7, journalId: "other" },
      },
      { type: "restartEpoch", fromFsn: 8 },
      { type: "send", hello: true, fromFsn: 1, bytesMax: limits.pushBytesMax },
    ]);
    expect(state).toMatchObject({ highest: 2, memory: { acked: 0, journalId: "other" } });
  });

  test("another journal that has all of it is only remembered", () => {
    const { state, effects } = run(7, [
      appended(8),
      answered({ welcome: welcome(7, "other"), durable: 8 }),
    ]);
    expect(effects).toEqual([{ type: "trim", throughFsn: 8 }, { type: "disarm" }]);
    expect(state.memory.journalId).toBe("other");
  });

  test("the origin knows FSNs never assigned: the storage was rewound, nothing of it is new", () => {
    const { state, effects } = run(7, [appended(8), answered({ welcome: welcome(12) })]);
    expect(effects).toEqual([
      { type: "report", report: { kind: "rewound", durableFsn: 12, highestFsn: 8, fromFsn: 9 } },
      { type: "restartEpoch", fromFsn: 9 },
      { type: "disarm" },
    ]);
    expect(state).toMatchObject({ phase: "idle", highest: 0, memory: { acked: 0 } });
  });

  test("rows of a boot the origin never saw, at FSNs it has: only they are sent anew", () => {
    const { effects } = run(7, [
      appended(15, 3),
      answered({ welcome: welcome(12, "j", 2), durable: 12 }, 10),
    ]);
    expect(effects).toEqual([
      { type: "report", report: { kind: "rewound", durableFsn: 12, highestFsn: 15, fromFsn: 10 } },
      { type: "restartEpoch", fromFsn: 10 },
      { type: "send", hello: true, fromFsn: 1, bytesMax: limits.pushBytesMax },
    ]);
  });

  test("rows of a new boot above the durable mark are simply new", () => {
    const { effects } = run(7, [
      appended(9, 3),
      answered({ welcome: welcome(7, "j", 2), durable: 9 }, 8),
    ]);
    expect(effects).toEqual([{ type: "trim", throughFsn: 9 }, { type: "disarm" }]);
  });
});

test("readAnswer takes what is said to this buffer and epoch, the highest ACK of several", () => {
  const ack = (buffer: string, epoch: string, durable: number) =>
    ({ type: "ack", ack: { buffer, epoch, received: durable, durable, replicated: 0 } }) as const;
  const messages = [
    {
      type: "welcome",
      welcome: { journalId: "j", buffer: "other", durableFsn: 99, latestBoot: 9 },
    },
    { type: "welcome", welcome: { journalId: "j", buffer: "b", durableFsn: 3, latestBoot: 1 } },
    ack("b", "e", 5),
    ack("b", "e", 4),
    ack("b", "old", 77),
    ack("other", "e", 88),
    { type: "credit", credit: { buffer: "b", bytes: 9 } },
    { type: "credit", credit: { buffer: "b", bytes: 0 } },
    { type: "credit", credit: { buffer: "other", bytes: 7 } },
  ] as const;
  expect(readAnswer(messages, "b", "e")).toEqual({
    welcome: { journalId: "j", buffer: "b", durableFsn: 3, latestBoot: 1 },
    durable: 5,
    nack: null,
    credit: 0,
  });
  expect(readAnswer([], "b", "e")).toEqual({
    welcome: null,
    durable: null,
    nack: null,
    credit: null,
  });
});
