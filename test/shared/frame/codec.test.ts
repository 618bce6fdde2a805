import { encode } from "@msgpack/msgpack";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { crc32c } from "../../../shared/crc/mod.ts";
import type { ForebayError } from "../../../shared/errors/mod.ts";
import {
  decodeMessages,
  encodeMessage,
  frameBytes,
  messageType,
  requestFlag,
  type Frame,
  type FrameRequest,
} from "../../../shared/frame/mod.ts";
import { limits } from "../../../shared/limits.ts";
import { codeOf } from "../thrown.ts";
import { message, requests } from "./arbitraries.ts";

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

function concat(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.concat(parts));
}

/** A message with a right length and CRC around whatever body. */
function sealed(type: number, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(9 + body.length);
  const view = new DataView(out.buffer);
  out[8] = type;
  out.set(body, 9);
  view.setUint32(0, out.length - 4, true);
  view.setUint32(4, crc32c(out.subarray(8)), true);
  return out;
}

/** A FRAME message with this header value and these bytes behind it. */
function frameOf(
  header: unknown,
  records: Uint8Array = new Uint8Array(0),
): Uint8Array<ArrayBuffer> {
  const encoded = encode(header);
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, encoded.length, true);
  return sealed(messageType.frame, concat(length, encoded, records));
}

const request: FrameRequest = {
  stream: "devices/a",
  flags: requestFlag.create | requestFlag.json,
  acceptedAt: 1_767_225_600_123,
  contentType: "application/json",
  producer: { id: "p", epoch: 2, seq: 7 },
  streamSeq: "0001",
  records: [utf8('{"a":1}'), utf8("2")],
};
const frame: Frame = {
  flags: 0,
  buffer: "eu:3",
  epoch: "k3j2",
  boot: 1_767_225_600_000,
  fsn: 5,
  voidReason: "",
  requests: [request, { ...request, producer: null, streamSeq: null, contentType: null }],
};

describe("the bytes of FORMAT.md", () => {
  test("an ACK, byte by byte", () => {
    const ack = { buffer: "eu:3", epoch: "k3", received: 300, durable: 299, replicated: 0 };
    const body = [
      4, 0x95, 0xa4, 0x65, 0x75, 0x3a, 0x33, 0xa2, 0x6b, 0x33, 0xcd, 1, 44, 0xcd, 1, 43, 0,
    ].slice(1);
    const typed = [messageType.ack, ...body];
    const expected = new Uint8Array(8 + typed.length);
    const view = new DataView(expected.buffer);
    view.setUint32(0, 4 + typed.length, true);
    view.setUint32(4, crc32c(Uint8Array.from(typed)), true);
    expected.set(typed, 8);
    expect(encodeMessage({ type: "ack", ack })).toEqual(expected);
  });

  test("a frame names each stream once and puts the records behind the header", () => {
    const encoded = encodeMessage({ type: "frame", frame });
    const header = [
      1,
      0,
      "eu:3",
      "k3j2",
      1_767_225_600_000,
      5,
      ["devices/a"],
      [
        [0, 2, 3, 1_767_225_600_123, "application/json", "p", 2, 7, "0001"],
        [0, 2, 3, 1_767_225_600_123, null, null, 0, 0, null],
      ],
    ];
    const records = concat(
      Uint8Array.of(7, 0, 0, 0),
      utf8('{"a":1}'),
      Uint8Array.of(1, 0, 0, 0),
      utf8("2"),
      Uint8Array.of(7, 0, 0, 0),
      utf8('{"a":1}'),
      Uint8Array.of(1, 0, 0, 0),
      utf8("2"),
    );
    expect(encoded).toEqual(frameOf(header, records));
  });

  test("the records of a decoded frame are views of the body", () => {
    const body = encodeMessage({ type: "frame", frame });
    const [decoded] = decodeMessages(body);
    expect(decoded).toEqual({ type: "frame", frame });
    const record = decoded?.type === "frame" ? decoded.frame.requests[0]?.records[0] : undefined;
    expect(record?.buffer).toBe(body.buffer);
  });

  test("an encoded message owns its buffer, exactly", () => {
    const encoded = encodeMessage({ type: "frame", frame });
    expect(encoded.buffer.byteLength).toBe(encoded.byteLength);
  });
});

describe("round trips", () => {
  test("any messages, stored apart and concatenated, come back", () => {
    fc.assert(
      fc.property(fc.array(message, { minLength: 1, maxLength: 5 }), (all) => {
        expect(decodeMessages(concat(...all.map(encodeMessage)))).toEqual(all);
      }),
    );
  });

  test("a body that is itself a view decodes the same", () => {
    const padded = concat(
      Uint8Array.of(1, 2, 3),
      encodeMessage({ type: "frame", frame }),
      Uint8Array.of(9),
    );
    expect(decodeMessages(padded.subarray(3, -1))).toEqual([{ type: "frame", frame }]);
  });

  test("F8 frameBytes is never below what is encoded, and not far above for ASCII", () => {
    fc.assert(
      fc.property(requests, (all) => {
        const encoded = encodeMessage({ type: "frame", frame: { ...frame, requests: all } });
        expect(frameBytes(all)).toBeGreaterThanOrEqual(encoded.length);
      }),
    );
    const encoded = encodeMessage({ type: "frame", frame });
    expect(frameBytes(frame.requests) - encoded.length).toBeLessThan(300);
  });

  test("a code this side does not know reads as internal, in a NACK as retriable", () => {
    const nack = sealed(
      messageType.nack,
      encode(["b", "e", 3, "from_the_future", false, 3, "why"]),
    );
    expect(decodeMessages(nack)).toEqual([
      {
        type: "nack",
        nack: {
          buffer: "b",
          epoch: "e",
          fsn: 3,
          code: "internal",
          retryable: true,
          expectedFsn: 3,
          message: "from_the_future: why",
        },
      },
    ]);
    const results = sealed(messageType.results, encode([[418, "from_the_future", null, []]]));
    expect(decodeMessages(results)).toEqual([
      { type: "results", results: [{ status: 418, code: "internal", detail: null, headers: {} }] },
    ]);
  });
});

describe("damage", () => {
  test("any cut is bad_frame", () => {
    fc.assert(
      fc.property(message, fc.nat(), (one, at) => {
        const encoded = encodeMessage(one);
        expect(codeOf(() => decodeMessages(encoded.subarray(0, at % encoded.length)))).toBe(
          "bad_frame",
        );
      }),
    );
  });

  test("any flipped bit is bad_frame or frame_too_large", () => {
    fc.assert(
      fc.property(message, fc.nat(), (one, at) => {
        const encoded = encodeMessage(one);
        const bit = at % (encoded.length * 8);
        encoded[bit >> 3] = (encoded[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(["bad_frame", "frame_too_large"]).toContain(codeOf(() => decodeMessages(encoded)));
      }),
      { numRuns: 500 },
    );
  });

  test("any bytes are refused with a code", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (noise) => {
        expect(["bad_frame", "frame_too_large"]).toContain(codeOf(() => decodeMessages(noise)));
      }),
    );
  });

  test("I8 any body under a right CRC is refused with a code or decodes", () => {
    const types = [...Object.values(messageType), 0, 3, 255];
    fc.assert(
      fc.property(fc.constantFrom(...types), fc.uint8Array({ maxLength: 60 }), (type, body) => {
        try {
          decodeMessages(sealed(type, body));
        } catch (error) {
          expect((error as ForebayError).code).toBe("bad_frame");
        }
      }),
      { numRuns: 2000 },
    );
  });

  test("I8 one wrong byte in a frame's header under a right CRC never throws anything else", () => {
    const encoded = encodeMessage({ type: "frame", frame });
    for (let at = 9; at < encoded.length; at++) {
      for (const byte of [0x00, 0x7f, 0x9f, 0xc0, 0xc1, 0xcf, 0xd9, 0xdb, 0xdd, 0xff]) {
        const body = encoded.slice(9);
        body[at - 9] = byte;
        try {
          decodeMessages(sealed(messageType.frame, body));
        } catch (error) {
          expect((error as ForebayError).code).toBe("bad_frame");
        }
      }
    }
  });
});

describe("I8 bombs", () => {
  const nested = new Uint8Array(3_000_000);
  for (let i = 0; i < nested.length; i += 3) {
    nested.set([0xdc, 0x27, 0x10], i); // array of 10,000
  }

  test("a million nested arrays, each claiming 10,000 elements: bad_frame at once, memory flat", () => {
    const before = process.memoryUsage();
    const body = sealed(messageType.results, nested);
    const started = performance.now();
    expect(codeOf(() => decodeMessages(body))).toBe("bad_frame");
    expect(performance.now() - started).toBeLessThan(500);
    expect(process.memoryUsage().rss - before.rss).toBeLessThan(64 * 1024 * 1024);
  });

  test.each<[string, number, number[]]>([
    ["an array of 2^32 - 1 results", messageType.results, [0xdd, 0xff, 0xff, 0xff, 0xff]],
    ["a string of 2^32 - 1 bytes", messageType.hello, [0x95, 0x01, 0xdb, 0xff, 0xff, 0xff, 0xff]],
    ["an integer above 2^53 - 1", messageType.hello, [0x95, 0xcf, 0, 0x20, 0, 0, 0, 0, 0, 0]],
    ["a string of invalid UTF-8", messageType.hello, [0x95, 0x01, 0xa1, 0xff, 0xa0, 0x00, 0x00]],
    ["a negative integer", messageType.hello, [0x95, 0x01, 0xa0, 0xa0, 0xff, 0x00]],
    ["a map", messageType.hello, [0x80]],
    ["bytes after the message", messageType.hello, [0x95, 0x01, 0xa0, 0xa0, 0x00, 0x00, 0x00]],
  ])("%s", (_, type, body) => {
    expect(codeOf(() => decodeMessages(sealed(type, Uint8Array.from(body))))).toBe("bad_frame");
  });
});

describe("what a frame may say", () => {
  const one = [0, 1, 0, 5, null, null, 0, 0, null];
  const record = Uint8Array.of(1, 0, 0, 0, 0x78);

  test.each<[string, unknown, Uint8Array]>([
    ["another version", [2, 0, "b", "e", 1, 1, ["s"], [one]], record],
    ["unknown frame flags", [1, 4, "b", "e", 1, 1, ["s"], [one]], record],
    ["direct and void", [1, 3, "", "", 0, 0, ["s"], []], new Uint8Array(0)],
    ["FSN 0 of an outbox", [1, 0, "b", "e", 1, 0, ["s"], [one]], record],
    ["no buffer", [1, 0, "", "e", 1, 1, ["s"], [one]], record],
    ["no request", [1, 0, "b", "e", 1, 1, [], []], new Uint8Array(0)],
    ["a direct frame with an FSN", [1, 1, "", "", 0, 1, ["s"], [one]], record],
    ["a void frame with requests", [1, 2, "b", "e", 1, 1, ["why"], [one]], record],
    ["a void frame without a reason", [1, 2, "b", "e", 1, 1, [], []], new Uint8Array(0)],
    ["a stream that is not listed", [1, 0, "b", "e", 1, 1, ["s"], [[1, ...one.slice(1)]]], record],
    [
      "a request without records",
      [1, 0, "b", "e", 1, 1, ["s"], [[0, 0, ...one.slice(2)]]],
      new Uint8Array(0),
    ],
    ["two records of a body", [1, 0, "b", "e", 1, 1, ["s"], [[0, 2, ...one.slice(2)]]], record],
    ["unknown request flags", [1, 0, "b", "e", 1, 1, ["s"], [[0, 1, 4, ...one.slice(3)]]], record],
    [
      "a producer epoch without a producer",
      [1, 0, "b", "e", 1, 1, ["s"], [[0, 1, 0, 5, null, null, 1, 0, null]]],
      record,
    ],
    [
      "a record beyond the end",
      [1, 0, "b", "e", 1, 1, ["s"], [one]],
      Uint8Array.of(2, 0, 0, 0, 0x78),
    ],
    ["a record's length cut off", [1, 0, "b", "e", 1, 1, ["s"], [one]], Uint8Array.of(2, 0)],
    [
      "bytes behind the records",
      [1, 0, "b", "e", 1, 1, ["s"], [one]],
      Uint8Array.of(1, 0, 0, 0, 0x78, 0x79),
    ],
    ["a header that is no array", { a: 1 }, record],
  ])("%s is bad_frame", (_, header, records) => {
    expect(codeOf(() => decodeMessages(frameOf(header, records)))).toBe("bad_frame");
  });

  test("the sane neighbour of these decodes", () => {
    expect(decodeMessages(frameOf([1, 0, "b", "e", 1, 1, ["s"], [one]], record))).toHaveLength(1);
  });
});

describe("F8 sizes", () => {
  const withRecord = (flags: number, bytes: number): Frame => ({
    ...frame,
    ...(flags === 1 ? { buffer: "", epoch: "", boot: 0, fsn: 0 } : {}),
    flags,
    requests: [{ ...request, records: [new Uint8Array(bytes)] }],
  });
  const overhead = encodeMessage({ type: "frame", frame: withRecord(0, 0) }).length;

  test("an outbox frame of frameBytesMax passes, one byte more does not", () => {
    const full = withRecord(0, limits.frameBytesMax - overhead);
    const encoded = encodeMessage({ type: "frame", frame: full });
    expect(encoded.length).toBe(limits.frameBytesMax);
    expect(decodeMessages(encoded)).toEqual([{ type: "frame", frame: full }]);
    const over = withRecord(0, limits.frameBytesMax - overhead + 1);
    expect(codeOf(() => encodeMessage({ type: "frame", frame: over }))).toBe("frame_too_large");
  });

  test("a direct frame takes a body of bodyBytesMax", () => {
    const full = withRecord(1, limits.bodyBytesMax);
    const [decoded] = decodeMessages(encodeMessage({ type: "frame", frame: full }));
    expect(decoded?.type === "frame" && decoded.frame.requests[0]?.records[0]?.length).toBe(
      limits.bodyBytesMax,
    );
    const over = withRecord(1, limits.bodyBytesMax + 64 * 1024);
    expect(codeOf(() => encodeMessage({ type: "frame", frame: over }))).toBe("frame_too_large");
  });

  test("an outbox frame above its limit is refused by the reader too", () => {
    const records = concat(Uint8Array.of(0, 0, 0x10, 0), new Uint8Array(0x100000));
    const one = [0, 1, 0, 5, null, null, 0, 0, null];
    expect(
      codeOf(() => decodeMessages(frameOf([1, 0, "b", "e", 1, 1, ["s"], [one]], records))),
    ).toBe("frame_too_large");
  });

  test("a length above every limit is frame_too_large before anything is read", () => {
    const body = new Uint8Array(16);
    new DataView(body.buffer).setUint32(0, 0x7fffffff, true);
    expect(codeOf(() => decodeMessages(body))).toBe("frame_too_large");
  });

  test("a frame of 1,000 requests with producers fits its header", () => {
    const many = Array.from({ length: 1000 }, (_, seq) => ({
      ...request,
      producer: { id: `4f9f6c1e-8f0e-4f3e-9d3c-${String(seq).padStart(12, "0")}`, epoch: 0, seq },
    }));
    const large: Frame = { ...frame, requests: many };
    expect(decodeMessages(encodeMessage({ type: "frame", frame: large }))).toEqual([
      { type: "frame", frame: large },
    ]);
  });
});
