import { expect, test } from "vitest";
import { didYouMean, suggest } from "../../../origin/config/mod.ts";

const known = ["start", "append", "read", "tail", "ls", "config"];

test.each([
  ["strat", "start"],
  ["star", "start"],
  ["apend", "append"],
  ["TAIL", "tail"],
  ["conf", "config"],
  ["raed", "read"],
])("%s was meant to be %s", (word, meant) => {
  expect(suggest(word, known)).toBe(meant);
});

test("nothing is suggested for what is near nothing", () => {
  expect(suggest("subscribe", known)).toBeUndefined();
  expect(suggest("", known)).toBeUndefined();
  expect(didYouMean("subscribe", known)).toBe("");
});

test("case, - and _ do not count", () => {
  expect(suggest("LONG-POLL-MS", ["longPollMs", "port"])).toBe("longPollMs");
});
