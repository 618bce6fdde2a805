import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  admitSeq,
  judgeDirect,
  judgeForwarded,
  type ProducerState,
  windowBits,
} from "../../../origin/stream/producer.ts";

/** State after these seqs of epoch 1 were stored in this order. */
function after(...seqs: number[]): ProducerState {
  let state: ProducerState | undefined;
  for (const seq of seqs) {
    state = admitSeq(state, { epoch: 1, seq }, 0);
  }
  if (state === undefined) {
    throw new Error("no seq");
  }
  return state;
}

describe("a producer's seq from the producer itself", () => {
  const state = after(0, 1, 2);
  test.each([
    ["unknown producer at 0", undefined, 1, 0, "fresh"],
    ["unknown producer beyond 0", undefined, 1, 1, "gap"],
    ["the next", state, 1, 3, "fresh"],
    ["the highest again", state, 1, 2, "duplicate"],
    ["an older one again", state, 1, 0, "duplicate"],
    ["one too far", state, 1, 4, "gap"],
    ["an older epoch", state, 0, 3, "stale"],
    ["a new epoch at 0", state, 2, 0, "fresh"],
    ["a new epoch elsewhere", state, 2, 3, "badStart"],
  ])("%s", (_, known, epoch, seq, expected) => {
    expect(judgeDirect(known, epoch, seq)).toBe(expected);
  });

  test("F12 a hole that another outbox still holds is filled, not called a duplicate", () => {
    expect(judgeDirect(after(0, 1, 5), 1, 3)).toBe("fresh");
    expect(judgeDirect(after(0, 1, 5, 3), 1, 3)).toBe("duplicate");
    expect(judgeDirect(after(0, 1, 5), 1, 0)).toBe("duplicate");
  });

  test("F12 below the window only what is known to be stored is a duplicate", () => {
    expect(judgeDirect(after(0, 1, 200), 1, 1)).toBe("duplicate");
    expect(judgeDirect(after(0, 1, 200), 1, 2)).toBe("tooOld");
  });
});

describe("a producer's seq out of an outbox frame", () => {
  test.each([
    ["unknown producer anywhere", undefined, 1, 40, "fresh"],
    ["above the highest, with a gap", after(0, 1), 1, 90, "fresh"],
    ["at the highest", after(0, 1), 1, 1, "duplicate"],
    ["a clear bit", after(10), 1, 9, "fresh"],
    ["the last bit of the window", after(63), 1, 0, "fresh"],
    ["just below the window", after(64), 1, 0, "tooOld"],
    ["below the window though stored", after(0, 64), 1, 0, "tooOld"],
    ["an older epoch", after(0), 0, 9, "stale"],
    ["a newer epoch anywhere", after(0), 2, 9, "fresh"],
  ])("F12 %s", (_, known, epoch, seq, expected) => {
    expect(judgeForwarded(known, epoch, seq)).toBe(expected);
  });
});

test("F12 the window equals a set of stored seqs", () => {
  const jumps = fc.array(fc.integer({ min: -90, max: 90 }), { minLength: 1, maxLength: 120 });
  fc.assert(
    fc.property(fc.nat(5), jumps, (first, steps) => {
      const storedSeqs = new Set<number>([first]);
      let state = admitSeq(undefined, { epoch: 1, seq: first }, 0);
      for (const step of steps) {
        const seq = Math.max(0, state.highest + step);
        const expected =
          seq > state.highest
            ? "fresh"
            : state.highest - seq >= windowBits
              ? "tooOld"
              : storedSeqs.has(seq)
                ? "duplicate"
                : "fresh";
        expect(judgeForwarded(state, 1, seq)).toBe(expected);
        if (expected === "fresh") {
          state = admitSeq(state, { epoch: 1, seq }, 0);
          storedSeqs.add(seq);
        }
        expect(state.highest).toBe(Math.max(...storedSeqs));
        for (let below = 0; below <= state.complete; below++) {
          expect(storedSeqs.has(below)).toBe(true);
        }
      }
    }),
    { numRuns: 300 },
  );
});

test("an epoch begun anew forgets the window of the last one", () => {
  const state = admitSeq(after(0, 1, 2, 3), { epoch: 2, seq: 0 }, 5);
  expect(state).toEqual({ epoch: 2, highest: 0, complete: 0, low: 1, high: 0, usedAt: 5 });
  expect(judgeDirect(state, 2, 1)).toBe("fresh");
});
