import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { limits } from "../../../shared/limits.ts";
import { isReservedPath, normalizeStreamPath } from "../../../shared/protocol/mod.ts";
import { codeOf, errorOf } from "../thrown.ts";

describe("P14 one key for every spelling of a path", () => {
  test.each([
    ["rooms/1", "rooms/1"],
    ["create-test-1767225600000", "create-test-1767225600000"],
    ["a:b@c!$&'()*+,;=~_.-", "a:b@c!$&'()*+,;=~_.-"],
    ["%61%2D%7e", "a-~"],
    ["rooms%2f1", "rooms/1"],
    ["a%20b", "a%20b"],
    ["%c3%bc", "%C3%BC"],
    ['a"<>^`{|}', "a%22%3C%3E%5E%60%7B%7C%7D"],
    ["100%25", "100%25"],
    ["%252e%252e", "%252e%252e"],
    ["a%3Fb%23c", "a%3Fb%23c"],
    ["...", "..."],
    [".well-known/..a/a..", ".well-known/..a/a.."],
    ["e%CC%81", "e%CC%81"],
    ["%C3%A9", "%C3%A9"],
    ["Rooms/A", "Rooms/A"],
    ["%E2%80%AE", "%E2%80%AE"],
  ])("%s is %s", (raw, path) => {
    expect(normalizeStreamPath(raw)).toBe(path);
  });

  test("what was normalised once stays as it is", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", minLength: 1, maxLength: 60 }), (text) => {
        const raw = encodeURIComponent(text.replace(/\p{Cs}/gu, "x"));
        let path: string;
        try {
          path = normalizeStreamPath(raw);
        } catch {
          return;
        }
        expect(path).toMatch(/^[\x21-\x7e]+$/);
        expect(normalizeStreamPath(path)).toBe(path);
      }),
      { numRuns: 500 },
    );
  });

  test("encoding any character of a path, in either case, changes nothing", () => {
    const segment = fc.stringMatching(/^[a-zA-Z0-9~_-]{1,10}$/);
    fc.assert(
      fc.property(
        fc.array(segment, { minLength: 1, maxLength: 4 }),
        fc.nat(),
        fc.boolean(),
        (segments, at, upper) => {
          const path = segments.join("/");
          const i = at % path.length;
          const hex = path.charCodeAt(i).toString(16).padStart(2, "0");
          const raw = `${path.slice(0, i)}%${upper ? hex.toUpperCase() : hex}${path.slice(i + 1)}`;
          expect(normalizeStreamPath(raw)).toBe(path);
        },
      ),
    );
  });
});

describe("P14 paths that intermediaries would repair differently are refused", () => {
  test.each([
    [""],
    ["/"],
    ["/a"],
    ["a/"],
    ["a//b"],
    ["a%2F%2Fb"],
    ["a/%2f"],
    ["."],
    [".."],
    ["a/."],
    ["a/.."],
    ["../a"],
    ["a/./b"],
    ["a/../b"],
    ["%2e"],
    ["%2E%2e"],
    ["a/.%2e/b"],
    ["a%2f..%2fb"],
    ["a/%2e%2e%2fb"],
    ["a\\b"],
    ["a%5Cb"],
    ["a%5c..%5cb"],
    ["a%00b"],
    ["a%0d%0ab"],
    ["a%7f"],
    ["a\tb"],
    ["a\u0000b"],
    ["a%C2%85b"],
    ["%"],
    ["a%2"],
    ["a%zz"],
    ["a%+1"],
    ["%u0061"],
    ["%ff"],
    ["%c3"],
    ["%c0%ae%c0%ae"],
    ["%ed%a0%80"],
    ["%f8%88%80%80%80"],
    ["ü"],
    ["a?b"],
    ["a#b"],
    ["a\u0080"],
  ])("%j", (raw) => {
    expect(codeOf(() => normalizeStreamPath(raw))).toBe("bad_path");
  });

  test("the longest path passes, one byte more is told the limit", () => {
    const longest = "a".repeat(limits.streamPathBytesMax);
    expect(normalizeStreamPath(longest)).toBe(longest);
    expect(errorOf(() => normalizeStreamPath(`${longest}a`)).message).toContain(
      "1025 bytes, the limit is 1024",
    );
    const spelledOut = "%20".repeat(400);
    expect(errorOf(() => normalizeStreamPath(spelledOut)).message).toContain(
      "1200 bytes, the limit is 1024",
    );
  });

  test("the message shows the path and what is wrong with it", () => {
    expect(errorOf(() => normalizeStreamPath("a/%2e%2e")).message).toBe(
      'the stream path "a/%2e%2e" has a dot segment',
    );
  });
});

test("Forebay's own streams are reserved, their neighbours are not", () => {
  expect(
    ["_forebay", "_forebay/quarantine", normalizeStreamPath("%5fforebay%2fx")].map(isReservedPath),
  ).toEqual([true, true, true]);
  expect(["_forebay2", "a/_forebay/b", "forebay"].map(isReservedPath)).toEqual([
    false,
    false,
    false,
  ]);
});
