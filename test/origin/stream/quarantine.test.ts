import { describe, expect, test } from "vitest";
import {
  encodeMessage,
  frameBytes,
  type FrameRequest,
  requestBytes,
  requestFlag,
} from "../../../shared/frame/mod.ts";
import { limits } from "../../../shared/limits.ts";
import {
  bench,
  bytes,
  contents,
  directFrame,
  greeted,
  ingested,
  outboxFrame,
  outcome,
  post,
  put,
  quarantine,
  request,
  tag,
} from "./harness.ts";

/** What a stream of JSON could not be read with. */
const noValues: readonly (readonly [string, string])[] = [
  ["more behind the value", '{"x":1},,'],
  ["two values", "1 2"],
  ["an open object", '{"x":1'],
  ["white space alone", " "],
  ["a word", "nul"],
  ["a byte order mark", "\ufeff1"],
  ["a control character in a string", '"\u0001"'],
  ["too deep", `${"[".repeat(66)}${"]".repeat(66)}`],
];

describe("what is no JSON", () => {
  test.each(noValues)(
    "P8 F13 a record that is no JSON value never comes into JSON: %s",
    (_, record) => {
      const from = greeted();
      const { streams } = from;
      const json = { contentType: "application/json" };
      streams.create(put("s", json));
      const posted = outcome(streams.append(post("s", record, json)));
      const code = posted.slice(4);
      const whole = { ...ingested("s", []), records: [bytes("1"), bytes(record)] };
      const made = { ...whole, stream: "made" };
      const { results } = streams.applyDirect(directFrame([whole, made, ingested("s", ["[2]"])]));
      expect(results.map(({ status }) => status)).toEqual([400, 400, 204]);
      expect(results.map((result) => result.code)).toEqual([code, code, null]);
      expect(results[0]?.detail).toMatch(/^record 1: /);
      streams.applyFrame(outboxFrame(1, [whole, made, ingested("s", ["3"])]));
      expect(quarantine(from).map(({ stream, ...held }) => [stream, held["code"]])).toEqual([
        ["s", code],
        ["made", code],
      ]);
      expect(contents(streams, "s")).toEqual(["[2]", "3"]);
      expect(streams.stats()).toMatchObject({ recordsStored: 2, recordsQuarantined: 4 });
    },
  );

  test("records that were split go as they are into a stream that is no JSON", () => {
    const { streams, journal } = greeted();
    streams.create(put("s"));
    const split = { ...request("s", ["{"]), flags: requestFlag.json };
    expect(streams.applyDirect(directFrame([split])).results).toMatchObject([{ status: 204 }]);
    streams.applyFrame(outboxFrame(1, [split]));
    journal.commit();
    expect(contents(streams, "s")).toEqual(["{", "{"]);
  });
});

describe("the quarantine", () => {
  test("a quarantined record can be put back by what is written of it", () => {
    const from = greeted();
    const odd = new Uint8Array([0xff, 0x00, 0xfe]);
    const frame = outboxFrame(
      1,
      [
        {
          ...request("none", [], { acceptedAt: 5, producer: tag("P", 1, 2) }),
          flags: requestFlag.json,
          records: [odd, bytes('"é"'), bytes("\u0001\u0002")],
        },
      ],
      {},
    );
    from.streams.applyFrame(frame);
    const about = {
      stream: "none",
      code: "stream_not_found",
      buffer: "eu:0",
      epoch: "e1",
      fsn: 1,
      index: 0,
      acceptedAt: 5,
      contentType: "text/plain",
      producer: { id: "P", epoch: 1, seq: 2 },
    };
    const records = [{ base64: "/wD+" }, { text: '"é"' }, { base64: "AQI=" }];
    expect(quarantine(from)).toEqual([{ ...about, split: true, records }]);
    expect(from.streams.stats().recordsQuarantined).toBe(3);
    const meta = from.streams.meta("_forebay/quarantine");
    expect(meta).toMatchObject({ json: true, closed: false });
  });

  /** Requests that the edge counts with few bytes and that take many in the quarantine; a frame is filled with each. */
  const dear: Record<string, (i: number) => FrameRequest> = {
    "one request of as many records as there may be": () =>
      ingested(
        "x".repeat(1017),
        Array.from({ length: limits.requestRecordsMax }, () => "1"),
      ),
    "the smallest requests": () => request("x", ["1"], { contentType: null }),
    "the smallest requests of producers": () =>
      request("x", ["1"], {
        acceptedAt: Number.MAX_SAFE_INTEGER,
        contentType: null,
        producer: tag("\u0001", Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
      }),
    "the longest names": (i) => request(`${i}/${"x".repeat(1015)}`, ["1"]),
    "control characters in names": () =>
      request("x", ["1"], {
        contentType: "\u0001".repeat(256),
        producer: tag("\u0002".repeat(256), 0, 0),
      }),
    "records of one byte that JSON escapes": () =>
      ingested(
        "x",
        Array.from({ length: limits.requestRecordsMax }, () => '"'),
      ),
    "one record of control characters": () => ingested("x", ["\u0000".repeat(1_048_000)]),
    "one record of what is no UTF-8": () => ({
      ...ingested("x", []),
      records: [new Uint8Array(1_048_000).fill(0xff)],
    }),
  };

  test.each(Object.keys(dear))(
    "F13 F20 whatever an edge can send fits into the quarantine: %s",
    (name) => {
      const from = greeted(bench({ storeBytesMax: 16 * 1024 * 1024 }));
      const { streams, journal } = from;
      streams.create(put("x", { closed: true }));
      const requests: FrameRequest[] = [];
      const make = dear[name] as (i: number) => FrameRequest;
      let next = { ...make(0), flags: make(0).flags & ~requestFlag.create };
      for (let sum = frameBytes([next]); sum <= limits.frameBytesMax;) {
        requests.push(next);
        next = { ...make(requests.length), flags: next.flags };
        sum += requestBytes(next);
      }
      expect(requests.length).toBeGreaterThan(0);
      const frame = outboxFrame(1, requests);
      expect(encodeMessage({ type: "frame", frame }).length).toBeLessThan(limits.frameBytesMax);
      expect(streams.applyFrame(frame)).toMatchObject({ kind: "applied" });
      expect(streams.stats().recordsQuarantined).toBe(
        requests.reduce((all, { records }) => all + records.length, 0),
      );
      expect(journal.entries.at(-1)?.length).toBeLessThan(7.5 * 1024 * 1024);
    },
  );
});
