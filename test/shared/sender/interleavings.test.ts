import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SimulatedOrigin, SimulatedOutbox, type Fate } from "./simulation.ts";

const frames = fc.nat(3);
const fate: fc.Arbitrary<Fate> = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Fate>({ kind: "answered" }) },
  fc.constant<Fate>({ kind: "lost_before" }),
  fc.constant<Fate>({ kind: "refused" }),
  frames.map((n): Fate => ({ kind: "lost_after", frames: n })),
  frames.map((n): Fate => ({ kind: "busy", frames: n })),
);
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
type Act =
  | {
      readonly kind:
        | ("append" | "restart" | "alarm" | "poison" | "copy" | "restore" | "wipe")
        | ("linkUp" | "carry" | "carryBusy" | "hear" | "cut" | "haunt");
    }
  | { readonly kind: "deliver"; readonly fate: Fate; readonly random: number };
const deliver: fc.Arbitrary<Act> = fc.record({
  kind: fc.constant("deliver" as const),
  fate,
  random,
});
const act = (...kinds: readonly Exclude<Act["kind"], "deliver">[]): fc.Arbitrary<Act> =>
  fc.constantFrom(...kinds).map((kind) => ({ kind }));

/** Lets the origin answer everything until the outbox is empty; fails when that takes too long. */
function drain(outbox: SimulatedOutbox): void {
  for (let i = 0; outbox.phase !== "idle"; i++) {
    expect(i).toBeLessThan(500);
    if (outbox.phase === "sending") {
      outbox.deliver({ kind: "answered" }, 0.5);
    } else if (outbox.linkDeliver(false) || outbox.linkHear(0.5)) {
      continue;
    } else if (outbox.alarmAtMs === null) {
      outbox.linkUp();
    } else {
      outbox.passToAlarm();
    }
  }
  expect(outbox.rows).toEqual([]);
  expect(outbox.alarmAtMs).toBeNull();
}

function play(outbox: SimulatedOutbox, one: Act): readonly number[] {
  switch (one.kind) {
    case "append":
      outbox.append();
      return [];
    case "restart":
      outbox.restart();
      return [];
    case "alarm":
      outbox.passToAlarm();
      return [];
    case "poison":
      outbox.origin.poisoned.add(outbox.appended + 1);
      return [];
    case "copy":
      outbox.keepCopy();
      return [];
    case "restore":
      return outbox.restoreCopy();
    case "wipe":
      outbox.origin.wipe();
      return [];
    case "linkUp":
      outbox.linkUp();
      return [];
    case "hear":
      outbox.linkHear(0.5);
      return [];
    case "carry":
      outbox.linkDeliver(false);
      return [];
    case "carryBusy":
      outbox.linkDeliver(true);
      return [];
    case "cut":
      outbox.linkDown(0.5);
      return [];
    case "haunt":
      outbox.haunt();
      return [];
    case "deliver":
      outbox.deliver(one.fate, one.random);
      return [];
  }
}

const all = (n: number): number[] => Array.from({ length: n }, (_, i) => i + 1);

describe("any interleaving", () => {
  test("F1 F12 every frame arrives exactly once and in order, whatever fails on the way", () => {
    const acts = fc.array(fc.oneof(act("append", "append", "restart", "alarm"), deliver, deliver), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(acts, (list) => {
        const outbox = new SimulatedOutbox(new SimulatedOrigin());
        for (const one of list) {
          play(outbox, one);
        }
        drain(outbox);
        expect(outbox.origin.applied).toEqual(all(outbox.appended));
        expect(outbox.epoch).toBe("epoch-1");
      }),
      { numRuns: 1000 },
    );
  });

  const onLinks = fc.array(
    fc.oneof(
      act("append", "append", "append", "linkUp", "cut", "haunt"),
      act("carry", "carry", "hear", "hear", "carryBusy", "restart", "alarm"),
      deliver,
    ),
    { maxLength: 100 },
  );

  test.each([true, false])(
    "F1 F5 F12 over links that come and go, pushing in between: %s: every frame exactly once and in order",
    (pushes) => {
      fc.assert(
        fc.property(onLinks, (list) => {
          const outbox = new SimulatedOutbox(new SimulatedOrigin(), pushes);
          list.forEach((one) => play(outbox, one));
          drain(outbox);
          expect(outbox.origin.applied).toEqual(all(outbox.appended));
          expect(outbox.epoch).toBe("epoch-1");
        }),
        { numRuns: 2000 },
      );
    },
  );

  test("F3 F13 over links too: poison goes alone, and a wiped origin loses only what it had acked", () => {
    const poisoned = fc.array(
      fc.oneof(act("append", "poison", "linkUp", "cut"), act("carry", "carry", "hear", "alarm")),
      { maxLength: 60 },
    );
    fc.assert(
      fc.property(poisoned, onLinks, (before, later) => {
        const outbox = new SimulatedOutbox(new SimulatedOrigin(), false);
        before.forEach((one) => play(outbox, one));
        const { acked } = outbox.memory;
        const gone =
          acked === 0 ? [] : all(outbox.appended).slice(0, outbox.appended - outbox.rows.length);
        outbox.linkDown(0.5);
        outbox.forgetGhosts();
        outbox.origin.wipe();
        outbox.append();
        later.forEach((one) => play(outbox, one));
        drain(outbox);
        const { poisoned: refused, applied } = outbox.origin;
        const rest = all(outbox.appended).slice(gone.length);
        const gaveUp = outbox.reports.filter(({ kind }) => kind === "gave_up").length;
        expect(applied).toEqual(rest.filter((payload) => !refused.has(payload)));
        expect(gaveUp).toBeLessThanOrEqual(refused.size);
      }),
      { numRuns: 500 },
    );
  });

  test("F13 a poisoned frame is given up alone, at its place, and the others pass", () => {
    const acts = fc.array(
      fc.oneof(act("append", "append", "restart", "alarm", "poison"), deliver, deliver),
      {
        maxLength: 60,
      },
    );
    fc.assert(
      fc.property(acts, (list) => {
        const outbox = new SimulatedOutbox(new SimulatedOrigin());
        for (const one of list) {
          play(outbox, one);
        }
        drain(outbox);
        const { poisoned, applied } = outbox.origin;
        expect(applied).toEqual(all(outbox.appended).filter((payload) => !poisoned.has(payload)));
        const gaveUp = outbox.reports.filter((report) => report.kind === "gave_up");
        expect(gaveUp.length).toBe(outbox.appended - applied.length);
      }),
      { numRuns: 500 },
    );
  });

  test("F3 an origin on an empty disk loses only what it had acked, and says which", () => {
    const acts = fc.array(fc.oneof(act("append", "append", "restart", "alarm"), deliver, deliver), {
      maxLength: 30,
    });
    fc.assert(
      fc.property(acts, acts, (before, later) => {
        const outbox = new SimulatedOutbox(new SimulatedOrigin());
        before.forEach((one) => play(outbox, one));
        const { acked } = outbox.memory;
        outbox.origin.wipe();
        outbox.append();
        later.forEach((one) => play(outbox, one));
        drain(outbox);
        expect(outbox.origin.applied).toEqual(all(outbox.appended).slice(acked));
        const lostRanges = outbox.reports.filter((report) => report.kind === "history_lost");
        expect(lostRanges).toEqual(
          acked === 0
            ? []
            : [{ kind: "history_lost", fromFsn: 1, toFsn: acked, journalId: "journal-2" }],
        );
      }),
      { numRuns: 500 },
    );
  });

  test("F3 an outbox on an older copy of its storage loses and doubles nothing it still has", () => {
    const acts = fc.array(fc.oneof(act("append", "append", "alarm", "restart"), deliver, deliver), {
      maxLength: 25,
    });
    fc.assert(
      fc.property(acts, acts, acts, (before, between, later) => {
        const outbox = new SimulatedOutbox(new SimulatedOrigin());
        before.forEach((one) => play(outbox, one));
        outbox.keepCopy();
        between.forEach((one) => play(outbox, one));
        const gone = new Set(outbox.restoreCopy());
        outbox.append();
        later.forEach((one) => play(outbox, one));
        drain(outbox);
        const { applied } = outbox.origin;
        expect(new Set(applied).size).toBe(applied.length);
        const missing = all(outbox.appended).filter((payload) => !applied.includes(payload));
        expect(missing.filter((payload) => !gone.has(payload))).toEqual([]);
        expect(applied).toEqual(applied.toSorted((a, b) => a - b));
      }),
      { numRuns: 1000 },
    );
  });
});
