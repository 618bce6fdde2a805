import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { splitJson } from "../../../shared/ingest/mod.ts";
import { limits } from "../../../shared/limits.ts";
import { codeOf, errorOf } from "../thrown.ts";

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
const texts = (records: readonly Uint8Array[]): string[] =>
  records.map((bytes) => new TextDecoder().decode(bytes));
const split = (text: string): string[] => texts(splitJson(utf8(text)));

describe("P8 JSON stays the bytes that came", () => {
  test.each<[string, string[]]>([
    ["1", ["1"]],
    [' \t\r\n{"a" : 1}\n', ['{"a" : 1}']],
    ["[]", []],
    [" [ ] ", []],
    ["[1,2]", ["1", "2"]],
    ["[ 1 ,\n 2 ]", ["1", "2"]],
    ["[[1,2],[3]]", ["[1,2]", "[3]"]],
    ["[[]]", ["[]"]],
    ['{"a":[1,2]}', ['{"a":[1,2]}']],
    ["12345678901234567890.10", ["12345678901234567890.10"]],
    ["[1e400,-0,1E+2]", ["1e400", "-0", "1E+2"]],
    ['{"b":1,"a":2,"b":3}', ['{"b":1,"a":2,"b":3}']],
    [
      '{"__proto__":{"admin":true},"constructor":1}',
      ['{"__proto__":{"admin":true},"constructor":1}'],
    ],
    [
      String.raw`["\u00e9\/\"","é","\ud800"]`,
      [String.raw`"\u00e9\/\""`, '"é"', String.raw`"\ud800"`],
    ],
    ['["a]b","[,","\\\\"]', ['"a]b"', '"[,"', '"\\\\"']],
    ['["\u2028\u007f😀"]', ['"\u2028\u007f😀"']],
  ])("%s", (text, messages) => {
    expect(split(text)).toEqual(messages);
  });

  test("messages are views of the body", () => {
    const body = utf8("[1,22]");
    expect(
      splitJson(body).map((bytes) => [bytes.buffer === body.buffer, bytes.byteOffset]),
    ).toEqual([
      [true, 1],
      [true, 3],
    ]);
  });

  test("any array of values, however it is spaced, splits into its values", () => {
    fc.assert(
      fc.property(
        fc.array(fc.jsonValue()),
        fc.constantFrom(undefined, 1, "\t"),
        (values, indent) => {
          const messages = split(JSON.stringify(values, null, indent));
          expect(messages.map((text) => JSON.parse(text))).toEqual(
            JSON.parse(JSON.stringify(values)),
          );
        },
      ),
    );
  });
});

describe("what is JSON here is what JSON.parse takes", () => {
  const parses = (text: string): boolean => {
    try {
      JSON.parse(text);
      return true;
    } catch {
      return false;
    }
  };
  /** What splitJson says about a text, in the words of the other. */
  const takes = (text: string): boolean => {
    try {
      split(text);
      return true;
    } catch (error) {
      expect((error as { code?: string }).code).toBe("bad_json");
      return false;
    }
  };

  test("texts of the characters JSON is made of", () => {
    const piece = fc.constantFrom(
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      '"',
      "\\",
      "u",
      "0",
      "1",
      "9",
      "-",
      "+",
      ".",
      "e",
      "E",
      " ",
      "\n",
      "\t",
      "a",
      "f",
      "true",
      "false",
      "null",
      '"a"',
      '{"a":',
      "[1,",
      "\\u00e9",
      "\\n",
      "\u0001",
      "\u007f",
      "é",
      "\u00a0",
      "\ufeff",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const text = pieces.join("");
        expect(takes(text)).toBe(parses(text));
      }),
      { numRuns: 5000 },
    );
  });

  test("valid texts with one character taken out, doubled or replaced", () => {
    fc.assert(
      fc.property(
        fc.json(),
        fc.nat(),
        fc.constantFrom("", "x", ",", '"', "0", "]"),
        (json, at, put) => {
          const i = at % json.length;
          for (const text of [
            json.slice(0, i) + put + json.slice(i + 1),
            json.slice(0, i + 1) + json.slice(i),
          ]) {
            expect(takes(text)).toBe(parses(text));
          }
        },
      ),
      { numRuns: 1000 },
    );
  });

  test.each([
    "",
    " ",
    "[1,]",
    "[,1]",
    "[1 2]",
    "[1",
    "]",
    '{"a":1,}',
    "{a:1}",
    "{'a':1}",
    '{"a"}',
    "01",
    "-",
    "-01",
    "1.",
    ".5",
    "1e",
    "1e+",
    "+1",
    "0x1",
    "NaN",
    "Infinity",
    "tru",
    "truex",
    "nul",
    "undefined",
    '"a',
    '"\\x"',
    '"\\u12g4"',
    '"a\nb"',
    "1 2",
    "[] []",
    "//x\n1",
    "\ufeff1",
    "\u00a01",
    "'a'",
  ])("%j is bad_json", (text) => {
    expect(parses(text)).toBe(false);
    expect(codeOf(() => split(text))).toBe("bad_json");
  });

  test("the message names the byte and what would have been right", () => {
    expect(errorOf(() => split('{"a":1,}')).message).toBe('found "}" at byte 7, expected a key');
    expect(errorOf(() => split("[1,2")).message).toBe(
      'the text ends at byte 4, expected "," or "]"',
    );
    expect(errorOf(() => split('["a\u0001"]')).message).toContain("found byte 0x01 at byte 3");
  });
});

describe("I8 hostile bodies", () => {
  test.each<[string, number[]]>([
    ["a byte that UTF-8 never has", [0x22, 0xff, 0x22]],
    ["a sequence cut off by the quote", [0x22, 0xe2, 0x82, 0x22]],
    ["an overlong slash", [0x22, 0xc0, 0xaf, 0x22]],
    ["an encoded surrogate", [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ["in a key", [0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]],
    ["in one of several messages", [0x5b, 0x31, 0x2c, 0x22, 0xff, 0x22, 0x5d]],
  ])("%s is bad_utf8", (_, bytes) => {
    expect(codeOf(() => splitJson(Uint8Array.from(bytes)))).toBe("bad_utf8");
  });

  const nest = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);

  test("I3 64 levels in a message pass, 65 do not, and the flattened array does not count", () => {
    const deepest = `{"a":${nest(limits.jsonDepthMax - 1)}}`;
    expect(split(deepest)).toEqual([deepest]);
    expect(split(`[${deepest}]`)).toEqual([deepest]);
    expect(codeOf(() => split(`{"a":${nest(limits.jsonDepthMax)}}`))).toBe("json_too_deep");
    expect(split(nest(limits.jsonDepthMax + 1))).toEqual([nest(limits.jsonDepthMax)]);
    expect(codeOf(() => split(nest(limits.jsonDepthMax + 2)))).toBe("json_too_deep");
  });

  test.each<[string, string]>([
    ["a million nested arrays, open", "[".repeat(1_000_000)],
    ["a million nested arrays, closed", nest(1_000_000)],
    ["as many objects", '{"a":'.repeat(400_000)],
  ])("%s: json_too_deep, no stack overflow, memory flat", (_, text) => {
    const body = utf8(text);
    const before = process.memoryUsage().rss;
    expect(codeOf(() => splitJson(body))).toBe("json_too_deep");
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024);
  });

  test("a number and a string of 4 MB each pass as they are", () => {
    const number = "9".repeat(4_000_000);
    const string = `"${"\\u0000".repeat(600_000)}"`;
    expect(split(`[${number},${string}]`)).toEqual([number, string]);
  });

  test("I3 10,000 messages pass, one more is too_many_records long before the body's end", () => {
    const { requestRecordsMax } = limits;
    expect(splitJson(utf8(`[${"0,".repeat(requestRecordsMax - 1)}0]`))).toHaveLength(
      requestRecordsMax,
    );
    const millions = utf8(`[${"0,".repeat(4_000_000)}0]`);
    const before = process.memoryUsage().rss;
    const error = errorOf(() => splitJson(millions));
    expect(error.code).toBe("too_many_records");
    expect(error.message).toContain("10000");
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024);
  });
});
