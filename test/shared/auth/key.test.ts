import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bearerKey, keyMatches, requestKey } from "../../../shared/auth/mod.ts";

describe("I4 the key a request presents", () => {
  test.each<[string | null, string | null]>([
    ["Bearer s3cret", "s3cret"],
    ["bearer s3cret", "s3cret"],
    ["BEARER  s3cret ", "s3cret"],
    ["Bearer a.b-c_d~e+f/g==", "a.b-c_d~e+f/g=="],
    [null, null],
    ["", null],
    ["Bearer", null],
    ["Bearer ", null],
    ["Bearer a b", null],
    ["Basic czNjcmV0", null],
    ["s3cret", null],
    ["Bearers3cret", null],
  ])("%j → %j", (authorization, key) => {
    expect(bearerKey(authorization)).toBe(key);
  });

  test("the query's key counts only without an Authorization field", () => {
    expect(requestKey(null, "q")).toBe("q");
    expect(requestKey("Bearer h", "q")).toBe("h");
    expect(requestKey("Basic x", "q")).toBeNull();
    expect(requestKey(null, null)).toBeNull();
  });
});

describe("I4 comparing keys", () => {
  test.each<[string | null, string, boolean]>([
    ["s3cret", "s3cret", true],
    ["schlüssel", "schlüssel", true],
    ["s3cret", "s3creT", false],
    ["", "s3cret", false],
    [null, "s3cret", false],
    ["s3crets3cret", "s3cret", false],
    ["s3cre", "s3cret", false],
    ["s3cret\0", "s3cret", false],
    ["", "", false],
    [null, "", false],
    ["x", "", false],
  ])("%j against %j: %s", (given, expected, same) => {
    expect(keyMatches(given, expected)).toBe(same);
  });

  test("is equality of the texts", () => {
    const key = fc.string({ unit: fc.constantFrom("a", "b"), minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(key, key, (given, expected) => {
        expect(keyMatches(given, expected)).toBe(given === expected);
      }),
      { numRuns: 500 },
    );
  });
});
