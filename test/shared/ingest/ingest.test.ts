import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  ingestAnswerJson,
  ingestStatus,
  parseIngest,
  type IngestAnswer,
} from "../../../shared/ingest/mod.ts";
import { limits } from "../../../shared/limits.ts";
import { codeOf, errorOf } from "../thrown.ts";

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

/** A parsed body in short: [index, text] of the accepted, [index, code] of the refused. */
function parsed(
  text: string,
  type: string | null,
): { records: unknown[]; refused: unknown[]; received: number } {
  const { records, refused, received } = parseIngest(utf8(text), type);
  return {
    records: records.map(({ index, bytes }) => [index, new TextDecoder().decode(bytes)]),
    refused: refused.map(({ index, code }) => [index, code]),
    received,
  };
}

/** What collectd's write_http posts with `Format "JSON"`: two value lists of one flush. */
const collectd = `[{"values":[1901474177],"dstypes":["counter"],"dsnames":["value"],"time":1280959128.123,"interval":10.000,"host":"leeloo.octo.it","plugin":"cpu","plugin_instance":"0","type":"cpu","type_instance":"idle"},{"values":[0.25,null],"dstypes":["gauge","gauge"],"dsnames":["a","b"],"time":1280959128.124,"interval":10.000,"host":"leeloo.octo.it","plugin":"load","plugin_instance":"","type":"load","type_instance":""}]`;

const ndjsonTypes = ["application/x-ndjson", "application/ndjson", "application/jsonl"];

describe("I2 JSON bodies", () => {
  test("an array is so many records, one value is one", () => {
    expect(parsed('[{"a":1}, 2]', "application/json")).toEqual({
      records: [
        [0, '{"a":1}'],
        [1, "2"],
      ],
      refused: [],
      received: 2,
    });
    expect(parsed('{"a":1}', "Application/JSON; charset=utf-8")).toEqual({
      records: [[0, '{"a":1}']],
      refused: [],
      received: 1,
    });
  });

  test("collectd's body comes apart into its value lists, numbers as they were", () => {
    const { records, received } = parsed(collectd, "application/json");
    expect(received).toBe(2);
    expect(`[${records.map((record) => (record as [number, string])[1]).join(",")}]`).toBe(
      collectd,
    );
  });

  test.each([
    ["[1,", "bad_json"],
    ["[]", "empty_array"],
    ["", "empty_body"],
    [" \r\n\t ", "empty_body"],
    [`[${"[".repeat(65)}${"]".repeat(65)}]`, "json_too_deep"],
    ['{"a":1}\n{"b":2}', "bad_json"],
  ])("%j as a whole is %s", (text, code) => {
    expect(codeOf(() => parsed(text, "application/json"))).toBe(code);
  });

  test("I3 a record of recordBytesMax passes, a larger one is refused by its index", () => {
    const longest = `"${"a".repeat(limits.recordBytesMax - 2)}"`;
    const { records, refused, received } = parseIngest(
      utf8(`[1,"a${longest.slice(1)},${longest}]`),
      "application/json",
    );
    expect(records.map(({ index, bytes }) => [index, bytes.length])).toEqual([
      [0, 1],
      [2, limits.recordBytesMax],
    ]);
    expect(refused).toEqual([
      {
        index: 1,
        code: "record_too_large",
        message: "record 1 has 1048577 bytes, the limit is 1048576",
      },
    ]);
    expect(received).toBe(3);
  });
});

describe("I2 lines", () => {
  test.each(ndjsonTypes)(
    "%s: each line is judged by itself, blank ones do not count, CRLF is fine",
    (type) => {
      expect(parsed('{"a":1}\r\n\r\n  {"b":2} \n{"c":\n[1,2]\n\t\n"d"', type)).toEqual({
        records: [
          [0, '{"a":1}'],
          [1, '{"b":2}'],
          [3, "[1,2]"],
          [4, '"d"'],
        ],
        refused: [[2, "bad_json"]],
        received: 5,
      });
    },
  );

  test("every kind of refusal names its record", () => {
    const deep = "[".repeat(65) + "]".repeat(65);
    const large = `"${"a".repeat(limits.recordBytesMax)}"`;
    const body = Buffer.concat([
      utf8(`1\nhello\n${deep}\n${large}\n"`),
      Uint8Array.of(0xff),
      utf8('"\n2\n'),
    ]);
    const { records, refused, received } = parseIngest(body, "application/x-ndjson");
    expect(records.map(({ index }) => index)).toEqual([0, 5]);
    expect(refused.map(({ index, code }) => [index, code])).toEqual([
      [1, "bad_json"],
      [2, "json_too_deep"],
      [3, "record_too_large"],
      [4, "bad_utf8"],
    ]);
    expect(refused[0]?.message).toBe('record 1: found "h" at byte 0, expected a value');
    expect(received).toBe(6);
  });

  test("I3 10,000 lines pass, one more is too_many_records", () => {
    const { requestRecordsMax } = limits;
    expect(parsed("1\n".repeat(requestRecordsMax), "application/x-ndjson").received).toBe(
      requestRecordsMax,
    );
    expect(codeOf(() => parsed("1\n".repeat(requestRecordsMax + 1), "application/x-ndjson"))).toBe(
      "too_many_records",
    );
    expect(parsed(`${"1\n\n".repeat(requestRecordsMax)}\n`, "application/x-ndjson").received).toBe(
      requestRecordsMax,
    );
  });

  test("whatever is sent, received = accepted + refused, each index once", () => {
    const line = fc.constantFrom(
      "",
      "1",
      '{"a":1}',
      "x",
      "  ",
      '"',
      "[",
      "null",
      "\r",
      '{"a":1}{"b":2}',
    );
    fc.assert(
      fc.property(
        fc.array(line, { minLength: 1 }),
        fc.constantFrom(null, "text/plain", ...ndjsonTypes),
        (lines, type) => {
          fc.pre(lines.some((text) => text.trim() !== ""));
          let result: ReturnType<typeof parseIngest>;
          try {
            result = parseIngest(utf8(lines.join("\n")), type);
          } catch (error) {
            expect((error as { code: string }).code).toBe("bad_json");
            return;
          }
          const indexes = [...result.records, ...result.refused]
            .map(({ index }) => index)
            .toSorted((a, b) => a - b);
          expect(indexes).toEqual(Array.from({ length: result.received }, (_, i) => i));
        },
      ),
    );
  });
});

describe("beacons: text/plain and no type at all", () => {
  test.each([null, "text/plain", "text/plain;charset=UTF-8"])(
    "%s: JSON if it parses, else lines",
    (type) => {
      expect(parsed('[{"a":1},\n{"b":2}]', type)).toEqual({
        records: [
          [0, '{"a":1}'],
          [1, '{"b":2}'],
        ],
        refused: [],
        received: 2,
      });
      expect(parsed('{\n "a": 1\n}', type).received).toBe(1);
      expect(parsed('{"a":1}\n{"b":2}\n', type)).toEqual({
        records: [
          [0, '{"a":1}'],
          [1, '{"b":2}'],
        ],
        refused: [],
        received: 2,
      });
    },
  );

  test("plain text is refused line by line and told what to send", () => {
    const { records, refused } = parseIngest(utf8("hello\nworld\n1\n"), "text/plain");
    expect(records.map(({ index }) => index)).toEqual([2]);
    expect(refused.map(({ index, code }) => [index, code])).toEqual([
      [0, "bad_json"],
      [1, "bad_json"],
    ]);
    expect(refused[0]?.message).toContain("one JSON value a line as application/x-ndjson");
  });

  test.each(["[\n1,\n2\n", '{\n"a": 1,\n}', "[\n1\n2\n]", '{"a":\n1'])(
    "%j is one damaged document, none of its lines a record",
    (text) => {
      expect(codeOf(() => parsed(text, null))).toBe("bad_json");
    },
  );

  test("a damaged later line does not hurt the others", () => {
    expect(parsed('{"a":1}\n{"b":\n{"c":3}', "text/plain")).toEqual({
      records: [
        [0, '{"a":1}'],
        [2, '{"c":3}'],
      ],
      refused: [[1, "bad_json"]],
      received: 3,
    });
  });

  test("too many records stay too many, an empty array stays empty", () => {
    expect(codeOf(() => parsed(`[${"0,".repeat(limits.requestRecordsMax)}0]`, null))).toBe(
      "too_many_records",
    );
    expect(codeOf(() => parsed("[]", null))).toBe("empty_array");
  });
});

describe("other content types", () => {
  test.each([
    "application/x-www-form-urlencoded",
    "application/octet-stream",
    "text/csv",
    "application/cloudevents+json",
  ])("%s is told what is taken", (type) => {
    const error = errorOf(() => parsed("{}", type));
    expect(error.code).toBe("unsupported_media_type");
    expect(error.message).toContain(`Content-Type ${type} is not taken here`);
    expect(error.message).toContain("application/json");
  });

  test("what is no media type is bad_header", () => {
    expect(codeOf(() => parsed("{}", "json"))).toBe("bad_header");
  });
});

describe("I8 hostile bodies", () => {
  test.each<[string, Uint8Array, string | null, string]>([
    [
      "a million nested arrays as JSON",
      utf8("[".repeat(2_000_000)),
      "application/json",
      "json_too_deep",
    ],
    ["a million nested arrays as a beacon", utf8("[".repeat(2_000_000)), null, "json_too_deep"],
    ["8 MB of NUL", new Uint8Array(8_000_000), "application/json", "bad_json"],
    [
      "8 MB of newlines",
      new Uint8Array(8_000_000).fill(0x0a),
      "application/x-ndjson",
      "empty_body",
    ],
    ["a UTF-16 body", Uint8Array.of(0xff, 0xfe, 0x5b, 0, 0x5d, 0), "application/json", "bad_json"],
    [
      "gzip without its header field",
      Uint8Array.of(0x1f, 0x8b, 8, 0, 0),
      "application/json",
      "bad_json",
    ],
  ])("%s: a code, memory flat", (_, body, type, code) => {
    const before = process.memoryUsage().rss;
    const error = errorOf(() => parseIngest(body, type));
    expect(error.code).toBe(code);
    expect(error.status).toBeLessThan(500);
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024);
  });
});

describe("I2 the answer", () => {
  const answer: IngestAnswer = {
    received: 3,
    accepted: 2,
    refused: [],
    deduplicated: 1,
    ack: "edge",
  };

  test("its JSON names what there is", () => {
    const refused = [{ index: 1, code: "bad_json", message: "record 1: x" }] as const;
    expect(JSON.parse(ingestAnswerJson({ ...answer, refused, position: "eu:3.k3.5.0" }))).toEqual({
      received: 3,
      accepted: 2,
      refused,
      deduplicated: 1,
      ack: "edge",
      position: "eu:3.k3.5.0",
    });
    expect(
      JSON.parse(ingestAnswerJson({ ...answer, ack: "origin", nextOffset: "0_0" })).nextOffset,
    ).toBe("0_0");
  });

  test("400 only when nothing was accepted", () => {
    const refusal = { index: 0, code: "bad_json", message: "" } as const;
    expect(ingestStatus(answer)).toBe(202);
    expect(ingestStatus({ ...answer, ack: "none" })).toBe(202);
    expect(ingestStatus({ ...answer, ack: "origin" })).toBe(200);
    expect(ingestStatus({ ...answer, refused: [refusal] })).toBe(202);
    expect(
      ingestStatus({ ...answer, received: 1, accepted: 0, deduplicated: 0, refused: [refusal] }),
    ).toBe(400);
    expect(ingestStatus({ ...answer, received: 1, accepted: 0, refused: [] })).toBe(202);
  });
});
