import { expect, test } from "vitest";
import { Deadlines } from "../../../origin/subscription/deadlines.ts";
import { ManualClock } from "../manualClock.ts";

test("no timer while nothing is due, one while something is, however much", () => {
  const clock = new ManualClock();
  const deadlines = new Deadlines(clock);
  const fired: string[] = [];
  expect(clock.armed.size).toBe(0);
  for (const [key, ms] of [
    ["c", 300],
    ["a", 100],
    ["b", 200],
    ["gone", 150],
  ] as const) {
    deadlines.set(key, ms, () => fired.push(key));
    expect(clock.armed.size).toBe(1);
  }
  deadlines.clear("gone");
  clock.advance(99);
  expect(fired).toEqual([]);
  clock.advance(1);
  expect([fired, clock.armed.size]).toEqual([["a"], 1]);
  deadlines.set("b", 500, () => fired.push("b, later"));
  expect(deadlines.at("b")).toBe(clock.now() + 500);
  clock.advance(200);
  expect(fired).toEqual(["a", "c"]);
  clock.advance(300);
  expect([fired, clock.armed.size]).toEqual([["a", "c", "b, later"], 0]);
  expect(deadlines.at("b")).toBeNull();
});

test("what fires may take away and set anew what is due in the same moment", () => {
  const clock = new ManualClock();
  const deadlines = new Deadlines(clock);
  const fired: string[] = [];
  deadlines.set("first", 10, () => {
    deadlines.clear("second");
    deadlines.set("third", 10, () => fired.push("third, anew"));
    fired.push("first");
  });
  deadlines.set("second", 10, () => fired.push("second"));
  deadlines.set("third", 10, () => fired.push("third"));
  clock.advance(10);
  expect(fired).toEqual(["first"]);
  clock.advance(10);
  expect(fired).toEqual(["first", "third, anew"]);
  deadlines.set("x", 10, () => fired.push("x"));
  deadlines.close();
  clock.advance(100);
  expect([fired.length, clock.armed.size]).toEqual([2, 0]);
});
