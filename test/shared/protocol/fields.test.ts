import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { limits } from "../../../shared/limits.ts";
import {
  compareSeq,
  isJson,
  isTextual,
  mediaType,
  parseDecimal,
  parseExpiresAt,
  parseLifetime,
  parseProducer,
  parseStreamSeq,
  parseTtl,
} from "../../../shared/protocol/mod.ts";
import { codeOf, errorOf } from "../thrown.ts";

const notDecimal = [
  "",
  " ",
  "-1",
  "+1",
  "01",
  "00",
  "1.0",
  "1e3",
  "0x10",
  "1abc",
  " 1",
  "1 ",
  "1_0",
  "١",
  "9007199254740992",
  "99999999999999999999",
  "NaN",
  "Infinity",
];

describe("decimal integers", () => {
  test.each([
    ["0", 0],
    ["7", 7],
    ["9007199254740991", Number.MAX_SAFE_INTEGER],
  ])("%s", (text, value) => {
    expect(parseDecimal(text)).toBe(value);
  });

  test.each(notDecimal)("%j is none", (text) => {
    expect(parseDecimal(text)).toBeUndefined();
  });
});

describe("producers", () => {
  test("none of the three fields is no producer", () => {
    expect(parseProducer(undefined, null, undefined)).toBeNull();
  });

  test("all three are one", () => {
    expect(parseProducer("device-1", "2", "30")).toEqual({ id: "device-1", epoch: 2, seq: 30 });
  });

  test.each<[string | undefined, string | undefined, string | undefined, string]>([
    ["p", undefined, undefined, "Producer-Epoch and Producer-Seq missing: the three come together"],
    ["p", "0", undefined, "Producer-Seq missing: the three come together"],
    [undefined, "0", "0", "Producer-Id missing: the three come together"],
    ["", "0", "0", "Producer-Id has 0 bytes, it needs 1 to 256"],
    ["p", "-1", "0", 'Producer-Epoch is "-1", not a decimal integer from 0 to 2^53 - 1'],
    ["p", "0", "1abc", 'Producer-Seq is "1abc", not a decimal integer from 0 to 2^53 - 1'],
  ])("%j %j %j is bad_producer", (id, epoch, seq, message) => {
    const error = errorOf(() => parseProducer(id, epoch, seq));
    expect(error.code).toBe("bad_producer");
    expect(error.message).toBe(message);
  });

  test("I3 the id's limit counts bytes", () => {
    const { producerIdBytesMax } = limits;
    expect(parseProducer("x".repeat(producerIdBytesMax), "0", "0")?.id).toHaveLength(
      producerIdBytesMax,
    );
    expect(codeOf(() => parseProducer("x".repeat(producerIdBytesMax + 1), "0", "0"))).toBe(
      "bad_producer",
    );
    expect(codeOf(() => parseProducer("ü".repeat(producerIdBytesMax / 2 + 1), "0", "0"))).toBe(
      "bad_producer",
    );
  });
});

describe("how long a stream lives", () => {
  test("TTL in seconds, as strict as every integer", () => {
    expect(parseTtl("3600")).toBe(3600);
    expect(parseTtl("0")).toBe(0);
    for (const text of [...notDecimal, "1000000000001"]) {
      expect(codeOf(() => parseTtl(text))).toBe("bad_header");
    }
  });

  test.each([
    ["2030-01-31T12:00:00Z", Date.UTC(2030, 0, 31, 12)],
    ["2030-01-31T12:00:00.123Z", Date.UTC(2030, 0, 31, 12, 0, 0, 123)],
    ["2030-01-31T12:00:00.123999999Z", Date.UTC(2030, 0, 31, 12, 0, 0, 123)],
    ["2030-01-31t12:00:00z", Date.UTC(2030, 0, 31, 12)],
    ["2030-01-31T12:00:00+00:00", Date.UTC(2030, 0, 31, 12)],
    ["2030-01-31T12:00:00+02:30", Date.UTC(2030, 0, 31, 9, 30)],
    ["2030-01-31T12:00:00-02:30", Date.UTC(2030, 0, 31, 14, 30)],
    ["2028-02-29T00:00:00Z", Date.UTC(2028, 1, 29)],
    ["2016-12-31T23:59:60Z", Date.UTC(2017, 0, 1)],
    ["0001-01-01T00:00:00Z", Date.parse("0001-01-01T00:00:00Z")],
  ])("%s", (text, ms) => {
    expect(parseExpiresAt(text)).toEqual({ text, ms });
  });

  test.each([
    "not-a-timestamp",
    "",
    "2030-01-31",
    "2030-01-31T12:00:00",
    "2030-01-31 12:00:00Z",
    "2030-1-31T12:00:00Z",
    "2030-02-29T00:00:00Z",
    "2030-04-31T00:00:00Z",
    "2030-00-10T00:00:00Z",
    "2030-13-01T00:00:00Z",
    "2030-01-00T00:00:00Z",
    "2030-01-31T24:00:00Z",
    "2030-01-31T12:60:00Z",
    "2030-01-31T12:00:61Z",
    "2030-01-31T12:00Z",
    "2030-01-31T12:00:00+0200",
    "2030-01-31T12:00:00+24:00",
    "2030-01-31T12:00:00.Z",
    " 2030-01-31T12:00:00Z",
    "2030-01-31T12:00:00Z ",
    "+002030-01-31T12:00:00Z",
    "1893456000",
  ])("%j is bad_header", (text) => {
    expect(codeOf(() => parseExpiresAt(text))).toBe("bad_header");
  });

  test("every time a Date writes is read as it was", () => {
    fc.assert(
      fc.property(
        fc.date({ min: new Date(0), max: new Date(Date.UTC(9999, 11, 31)), noInvalidDate: true }),
        (date) => {
          expect(parseExpiresAt(date.toISOString()).ms).toBe(date.getTime());
        },
      ),
    );
  });

  test("one of the two, neither, never both", () => {
    expect(parseLifetime(null, undefined)).toEqual({ ttlSeconds: null, expiresAt: null });
    expect(parseLifetime("60", null)).toEqual({ ttlSeconds: 60, expiresAt: null });
    const text = "2030-01-31T12:00:00Z";
    expect(parseLifetime(undefined, text)).toEqual({
      ttlSeconds: null,
      expiresAt: { text, ms: Date.parse(text) },
    });
    expect(codeOf(() => parseLifetime("60", text))).toBe("bad_header");
    expect(codeOf(() => parseLifetime("", null))).toBe("bad_header");
  });
});

describe("content types", () => {
  test.each([
    ["text/plain", "text/plain"],
    ["TEXT/PLAIN", "text/plain"],
    ["application/json; charset=utf-8", "application/json"],
    [" application/json ;charset=utf-8", "application/json"],
    ["application/vnd.api+json", "application/vnd.api+json"],
  ])("%j", (value, type) => {
    expect(mediaType(value)).toBe(type);
  });

  test.each([
    "",
    "text",
    "/plain",
    "text/",
    "text/plain/x",
    "text plain",
    "text/pl ain",
    "a,b/c",
    "text/plain, a/b",
  ])("%j is bad_header", (value) => {
    expect(codeOf(() => mediaType(value))).toBe("bad_header");
  });

  test("I3 the limit counts parameters too", () => {
    const longest = `text/plain;${"x".repeat(limits.contentTypeBytesMax - 11)}`;
    expect(mediaType(longest)).toBe("text/plain");
    expect(codeOf(() => mediaType(`${longest}x`))).toBe("bad_header");
  });

  test("P16 what is JSON and what SSE carries as text", () => {
    const types = [
      "application/json",
      "application/vnd.api+json",
      "text/plain",
      "text/event-stream",
      "application/octet-stream",
      "image/png",
    ];
    expect(types.map(isJson)).toEqual([true, true, false, false, false, false]);
    expect(types.map(isTextual)).toEqual([true, true, true, true, false, false]);
  });
});

describe("Stream-Seq", () => {
  test("is compared byte by byte, so that 10 comes before 2", () => {
    const sorted = [
      "",
      "001",
      "002",
      "10",
      "2",
      "9",
      "A",
      "a",
      "aa",
      "\u00e9",
      "\ue000",
      "\uffff",
      "\u{10000}",
      "\u{10ffff}",
    ];
    expect(sorted.toReversed().toSorted(compareSeq)).toEqual(sorted);
    expect(compareSeq("002", "002")).toBe(0);
  });

  test("the order is that of the UTF-8 bytes", () => {
    const text = fc.string({ unit: "binary", maxLength: 6 });
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(Math.sign(compareSeq(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
      }),
      { numRuns: 1000 },
    );
  });

  test("is refused when empty or too long", () => {
    expect(parseStreamSeq(undefined)).toBeNull();
    expect(parseStreamSeq("1")).toBe("1");
    expect(codeOf(() => parseStreamSeq(""))).toBe("bad_header");
    expect(parseStreamSeq("1".repeat(limits.streamSeqBytesMax))).toHaveLength(
      limits.streamSeqBytesMax,
    );
    expect(codeOf(() => parseStreamSeq("1".repeat(limits.streamSeqBytesMax + 1)))).toBe(
      "bad_header",
    );
  });
});
