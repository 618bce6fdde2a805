import fc from "fast-check";
import { expect, test } from "vitest";
import { Glob } from "../../../origin/subscription/mod.ts";
import { limits } from "../../../shared/limits.ts";
import { errorOf } from "../../shared/thrown.ts";
import "../gateway/eventually.ts";

test.each([
  ["events/*", "events/a", true],
  ["events/*", "events", false],
  ["events/*", "events/a/b", false],
  ["events/*", "event/a", false],
  ["*", "a", true],
  ["*", "a/b", false],
  ["**", "a", true],
  ["**", "a/b/c", true],
  ["a/**", "a", true],
  ["a/**", "a/b/c", true],
  ["a/**", "b/a", false],
  ["**/z", "z", true],
  ["**/z", "a/b/z", true],
  ["**/z", "a/z/b", false],
  ["a/**/z", "a/z", true],
  ["a/**/z", "a/b/c/z", true],
  ["a/**/*/z", "a/z", false],
  ["a/**/*/z", "a/b/z", true],
  ["a/**/**/z", "a/z", true],
  ["**/a/**", "x/a/y", true],
  ["a%20b", "a%20b", true],
  ["%61/%2a", "a/*", true],
  ["%2A", "a", false],
  ["a%2Fb/*", "a/b/c", true],
])("%s against %s: %s", (pattern, path, expected) => {
  expect(new Glob(pattern).matches(path)).toBe(expected);
});

test.each([
  ["logs-*", "bad_subscription"],
  ["***", "bad_subscription"],
  ["a//b", "bad_path"],
  ["a/../b", "bad_path"],
  ["/a", "bad_path"],
  ["%zz", "bad_path"],
  ["a".repeat(limits.globBytesMax + 1), "bad_subscription"],
  [Array.from({ length: limits.globSegmentsMax + 1 }, () => "a").join("/"), "bad_subscription"],
])("the pattern %s is refused", (pattern, code) => {
  expect(errorOf(() => new Glob(pattern)).code).toBe(code);
});

test("a pattern of the greatest length matches to its last segment", () => {
  const path = Array.from({ length: limits.globSegmentsMax }, (_, i) => `s${i}`).join("/");
  expect(new Glob(path).matches(path)).toBe(true);
  expect(new Glob(path).matches(`${path}/x`)).toBe(false);
  expect(new Glob(path).matches(path.slice(0, -1))).toBe(false);
});

/** What the pattern means, tried in every way. */
function means(pattern: readonly string[], path: readonly string[]): boolean {
  const [head, ...rest] = pattern;
  if (head === undefined) {
    return path.length === 0;
  }
  if (head === "**") {
    return path.some((_, i) => means(rest, path.slice(i))) || means(rest, []);
  }
  return path.length > 0 && (head === "*" || head === path[0]) && means(rest, path.slice(1));
}

test("the automaton agrees with trying every way, and its text means the same", () => {
  const segment = fc.constantFrom("a", "b", "*", "**");
  const patterns = fc.array(segment, { minLength: 1, maxLength: 7 });
  const paths = fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(patterns, paths, (pattern, path) => {
      const glob = new Glob(pattern.join("/"));
      const expected = means(pattern, path);
      expect(glob.matches(path.join("/"))).toBe(expected);
      expect(new Glob(glob.text).matches(path.join("/"))).toBe(expected);
    }),
    { numRuns: 3000 },
  );
});

test("the pattern and path that backtracking is worst at cost one pass", () => {
  const pattern = Array.from({ length: 14 }, () => "**/a").join("/");
  const glob = new Glob(`${pattern}/b`);
  const path = Array.from({ length: 500 }, () => "a").join("/");
  const startedAt = performance.now();
  for (let i = 0; i < 100; i++) {
    expect(glob.matches(path)).toBe(false);
  }
  expect(performance.now() - startedAt).toBeLessThan(2000);
});
