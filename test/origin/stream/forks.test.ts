import { describe, expect, test } from "vitest";
import { ForebayError } from "../../../shared/errors/mod.ts";
import { lsn, streamId } from "../../../shared/ids/mod.ts";
import { formatOffset } from "../../../shared/protocol/mod.ts";
import { decodeEntry } from "../../../origin/stream/entry.ts";
import type { CreateRequest, OwnedStreams, Verdict } from "../../../origin/stream/mod.ts";
import {
  bench,
  bytes,
  contents,
  crashed,
  directFrame,
  headersOf,
  ingested,
  isRefused,
  outcome,
  post,
  put,
  readBatch,
  Reply,
  tag,
  text,
} from "./harness.ts";

const json = { contentType: "application/json" };

/** A fork of `from`: at the tail, or at the offset given. */
const fork = (
  path: string,
  from: string,
  at: { offset?: string; subOffset?: number } & Partial<CreateRequest> = {},
): CreateRequest => {
  const { offset = null, subOffset = 0, ...extras } = at;
  return put(path, { contentType: null, fork: { from, offset, subOffset }, ...extras });
};

/** What is at the path: its id, or the refusal. */
const at = (streams: OwnedStreams, path: string): number | string => {
  const meta = streams.meta(path);
  return isRefused(meta) ? outcome(meta) : meta.id;
};

const start = formatOffset(0, 0);

/** A source `s` of text: "ab", "cde", "f"; durable. */
function source() {
  const from = bench();
  from.streams.create(put("s", { body: bytes("ab") }));
  from.streams.append(post("s", "cde"));
  from.streams.append(post("s", "f"));
  from.journal.commit();
  return from;
}

describe("a fork", () => {
  test("has what its source had, and goes on by itself", () => {
    const { streams, journal } = source();
    const made = streams.create(fork("f", "s", { offset: formatOffset(2, 5) }));
    expect([outcome(made), headersOf(made)]).toEqual([
      "201",
      { "content-type": "text/plain", "stream-next-offset": formatOffset(2, 5) },
    ]);
    streams.append(post("f", "F"));
    streams.append(post("s", "g"));
    journal.commit();
    expect(contents(streams, "f")).toEqual(["ab", "cde", "F"]);
    expect(contents(streams, "s")).toEqual(["ab", "cde", "f", "g"]);
    expect(readBatch(streams, "f", formatOffset(2, 5)).records.map(text)).toEqual(["F"]);
    expect(readBatch(streams, "f").next).toBe(formatOffset(3, 6));
  });

  test("names its source's generation in one entry, with what it has of it", () => {
    const { streams, journal } = source();
    streams.create(fork("f", "s", { offset: formatOffset(1, 2), subOffset: 2, body: bytes("F") }));
    const ops = decodeEntry(journal.entries.at(-1) ?? new Uint8Array(0));
    expect(ops).toMatchObject([
      {
        kind: 1,
        id: 2,
        fork: { source: 1, offset: { record: 1, byte: 2 }, subOffset: 2, records: 2, bytes: 4 },
      },
      { kind: 2, id: 2, records: [Buffer.from("F")] },
    ]);
    journal.commit();
    expect(contents(streams, "f")).toEqual(["ab", "cd", "F"]);
  });

  test("copies nothing: what the store holds is the same with a thousand of them", () => {
    const { streams, store } = source();
    const before = store.bytesHeld;
    for (let n = 0; n < 1000; n++) {
      const subOffset = n % 3;
      streams.create(fork(`f${n}`, "s", { offset: formatOffset(1, 2), subOffset }));
    }
    expect(store.bytesHeld).toBe(before);
  });

  test.each<[string, number, string[] | string]>([
    [start, 0, []],
    [start, 1, ["a"]],
    [start, 2, ["ab"]],
    [start, 3, "400 bad_offset"],
    [formatOffset(1, 2), 2, ["ab", "cd"]],
    [formatOffset(1, 2), 4, "400 bad_offset"],
    [formatOffset(3, 6), 0, ["ab", "cde", "f"]],
    [formatOffset(3, 6), 1, "400 bad_offset"],
    [formatOffset(1, 1), 0, "400 bad_offset"],
    [formatOffset(4, 7), 0, "400 bad_offset"],
    ["nonsense", 0, "400 bad_offset"],
  ])("of text at %s and %i bytes", (offset, subOffset, expected) => {
    const { streams, journal } = source();
    const made = streams.create(fork("f", "s", { offset, subOffset }));
    journal.commit();
    expect(made.code === null ? contents(streams, "f") : outcome(made)).toEqual(expected);
    if (made.code !== null) {
      expect(headersOf(made)).toEqual({ "stream-next-offset": formatOffset(3, 6) });
    }
  });

  test.each<[number, number, string[] | string]>([
    [0, 0, []],
    [0, 2, ["1", "[2]"]],
    [1, 1, ["1", "[2]"]],
    [1, 2, ["1", "[2]", "3"]],
    [1, 3, "400 bad_offset"],
    [0, Number.MAX_SAFE_INTEGER, "400 bad_offset"],
  ])("of JSON at value %i and %i more", (record, subOffset, expected) => {
    const { streams, journal } = bench();
    streams.create(put("s", { ...json, body: bytes("[1,[2],3]") }));
    const offset = formatOffset(record, record);
    const made = streams.create(fork("f", "s", { offset, subOffset }));
    journal.commit();
    expect(made.code === null ? contents(streams, "f") : outcome(made)).toEqual(expected);
  });

  test("of a fork has what that one has, cut records cut again", () => {
    const { streams, journal } = bench();
    streams.create(put("a", { body: bytes("abcdef") }));
    streams.create(fork("b", "a", { offset: start, subOffset: 4 }));
    streams.append(post("b", "B"));
    streams.create(fork("c", "b"));
    streams.append(post("c", "C"));
    streams.create(fork("d", "c", { offset: start, subOffset: 2 }));
    streams.append(post("d", "D"));
    expect(outcome(streams.create(fork("e", "b", { offset: start, subOffset: 5 })))).toBe(
      "400 bad_offset",
    );
    journal.commit();
    expect(contents(streams, "c")).toEqual(["abcd", "B", "C"]);
    expect(contents(streams, "d")).toEqual(["ab", "D"]);
    expect(readBatch(streams, "c", formatOffset(1, 4)).records.map(text)).toEqual(["B", "C"]);
    expect(readBatch(streams, "d", formatOffset(1, 2)).records.map(text)).toEqual(["D"]);
  });

  test("P7 a response across the boundary is cut at the maximum of all of it", () => {
    const { streams, journal } = source();
    streams.create(fork("f", "s", { offset: formatOffset(2, 5), body: bytes("1234") }));
    streams.append(post("f", "5"));
    journal.commit();
    const read = (from: string, maxBytes: number): [string[], string] => {
      const batch = readBatch(streams, "f", from, maxBytes);
      return [batch.records.map(text), batch.next];
    };
    expect(read("-1", 1)).toEqual([["ab"], formatOffset(1, 2)]);
    expect(read("-1", 8)).toEqual([["ab", "cde"], formatOffset(2, 5)]);
    expect(read("-1", 9)).toEqual([["ab", "cde", "1234"], formatOffset(3, 9)]);
    expect(read(formatOffset(1, 2), 8)).toEqual([["cde", "1234", "5"], formatOffset(4, 10)]);
    expect(read(formatOffset(2, 5), 2)).toEqual([["1234"], formatOffset(3, 9)]);
  });

  test("of a closed stream is open, and closes alone", () => {
    const { streams, journal } = source();
    streams.append(post("s", "", { close: true }));
    const made = streams.create(fork("f", "s"));
    expect(headersOf(made)["stream-closed"]).toBeUndefined();
    expect(outcome(streams.append(post("f", "F", { close: true })))).toBe("204");
    expect(outcome(streams.create(fork("g", "s", { closed: true })))).toBe("201");
    journal.commit();
    expect(readBatch(streams, "f")).toMatchObject({ closed: true, next: formatOffset(4, 7) });
    expect(readBatch(streams, "g")).toMatchObject({ closed: true, next: formatOffset(3, 6) });
  });

  test("knows no producer and no Stream-Seq of its source", () => {
    const { streams } = source();
    streams.append(post("s", "1", { producer: tag("P", 3, 0), streamSeq: "9" }));
    streams.create(fork("f", "s"));
    const again = { producer: tag("P", 0, 0), streamSeq: "1" };
    expect(outcome(streams.append(post("f", "1", again)))).toBe("200");
    expect(outcome(streams.append(post("s", "1", { producer: tag("P", 2, 0) })))).toBe(
      "403 stale_epoch",
    );
  });

  const expiresAt = { text: "2030-01-01T00:00:00Z", ms: Date.parse("2030-01-01T00:00:00Z") };
  const later = { text: "2031-01-01T00:00:00Z", ms: Date.parse("2031-01-01T00:00:00Z") };
  test.each<[string, Partial<CreateRequest>, Partial<CreateRequest>, object]>([
    ["nothing", {}, {}, { ttlSeconds: null, expiresAt: null }],
    ["its own TTL", {}, { ttlSeconds: 9 }, { ttlSeconds: 9, expiresAt: null }],
    ["its own end", {}, { expiresAt }, { ttlSeconds: null, expiresAt: expiresAt.text }],
    ["the source's TTL", { ttlSeconds: 60 }, {}, { ttlSeconds: 60, expiresAt: null }],
    ["a longer TTL", { ttlSeconds: 60 }, { ttlSeconds: 99 }, { ttlSeconds: 99, expiresAt: null }],
    ["an end", { ttlSeconds: 60 }, { expiresAt }, { ttlSeconds: null, expiresAt: expiresAt.text }],
    ["the source's end", { expiresAt }, {}, { ttlSeconds: null, expiresAt: expiresAt.text }],
    ["a TTL", { expiresAt }, { ttlSeconds: 9 }, { ttlSeconds: 9, expiresAt: null }],
    [
      "a later end",
      { expiresAt },
      { expiresAt: later },
      { ttlSeconds: null, expiresAt: later.text },
    ],
  ])("lives by %s", (_, of, asked, expected) => {
    const { streams } = bench();
    streams.create(put("s", of));
    expect(outcome(streams.create(fork("f", "s", asked)))).toBe("201");
    expect(streams.meta("f")).toMatchObject(expected);
    expect(outcome(streams.create(fork("f", "s", asked)))).toBe("200");
  });

  test("P4 has a sliding window of its own, and reading it does not keep its source", () => {
    const { streams, clock, journal } = bench();
    streams.create(put("s", { ttlSeconds: 10, body: bytes("s") }));
    clock.advance(6000);
    streams.create(fork("f", "s"));
    journal.commit();
    clock.advance(3999);
    streams.read("f", "-1", { maxBytes: 9, touch: true });
    expect(at(streams, "s")).toBe(1);
    clock.advance(1);
    expect(at(streams, "s")).toBe("410 stream_gone");
    clock.advance(9998);
    expect(contents(streams, "f")).toEqual(["s"]);
    clock.advance(1);
    expect(at(streams, "f")).toBe("404 stream_not_found");
    expect(at(streams, "s")).toBe("404 stream_not_found");
  });
});

describe("P5 a source", () => {
  const outOfRoom = new ForebayError("disk_full", "no room");
  const tooLarge = bytes("x".repeat(70 * 1024 * 1024));
  test.each<[string, CreateRequest, string]>([
    ["another type", fork("f", "s", json), "409 content_type_mismatch"],
    ["no type", fork("f", "s", { contentType: "text" }), "400 bad_header"],
    ["an offset past the tail", fork("f", "s", { offset: formatOffset(9, 9) }), "400 bad_offset"],
    ["a sub-offset past the tail", fork("f", "s", { subOffset: 1 }), "400 bad_offset"],
    ["a taken path", fork("taken", "s"), "409 stream_conflict"],
    ["a reserved path", fork("_forebay/f", "s"), "403 reserved_path"],
    ["more than the store takes", fork("f", "s", { body: tooLarge }), "503 store_full"],
  ])("is not held by a fork refused for %s", (_, request, expected) => {
    const { streams, store, journal } = source();
    streams.create(put("taken"));
    const entries = journal.entries.length;
    expect(outcome(streams.create(request))).toBe(expected);
    expect(journal.entries.length).toBe(entries);
    streams.remove("s");
    expect(at(streams, "s")).toBe("404 stream_not_found");
    journal.commit();
    expect(store.bytesHeld).toBe(0);
  });

  test("is not held by a fork that the journal refuses", () => {
    const { streams, journal } = source();
    journal.refusal = outOfRoom;
    expect(() => streams.create(fork("f", "s"))).toThrow(outOfRoom);
    journal.refusal = null;
    streams.remove("s");
    expect([at(streams, "s"), at(streams, "f")]).toEqual([
      "404 stream_not_found",
      "404 stream_not_found",
    ]);
  });

  test("is held once by a fork that is asked for again, in flight or later", () => {
    const { streams, journal } = source();
    const ask = (): Verdict => streams.create(fork("f", "s"));
    const [first, inFlight] = [ask(), ask()];
    expect([outcome(first), outcome(inFlight)]).toEqual(["201", "200"]);
    expect(inFlight.lsn).toBe(first.lsn);
    journal.commit();
    streams.append(post("s", "more"));
    expect(outcome(ask())).toBe("200");
    const where = { offset: formatOffset(3, 6) };
    expect(outcome(streams.create(fork("f", "s", where)))).toBe("200");
    streams.remove("s");
    expect(outcome(ask())).toBe("200");
    streams.remove("f");
    expect([at(streams, "s"), at(streams, "f")]).toEqual([
      "404 stream_not_found",
      "404 stream_not_found",
    ]);
  });

  test.each<[string, CreateRequest]>([
    ["no fork", put("f")],
    ["another source", fork("f", "t")],
    ["another offset", fork("f", "s", { offset: formatOffset(1, 2) })],
    ["another sub-offset", fork("f", "s", { offset: formatOffset(2, 5), subOffset: 1 })],
    ["another TTL", fork("f", "s", { ttlSeconds: 1 })],
    ["another type", fork("f", "s", json)],
    ["an end", fork("f", "s", { closed: true })],
  ])("has forks that %s is not: 409", (_, request) => {
    const { streams } = source();
    streams.create(put("t", { body: bytes("t") }));
    streams.create(fork("f", "s", { offset: formatOffset(2, 5) }));
    const again = streams.create(request);
    expect(outcome(again)).toBe("409 stream_conflict");
    expect(again.detail).toContain(`forked from "s" at ${formatOffset(2, 5)}`);
  });

  test("that was deleted is gone for all but its forks, and its path is not free", () => {
    const { streams, journal } = source();
    streams.create(fork("f", "s"));
    expect(outcome(streams.remove("s"))).toBe("204");
    expect(at(streams, "s")).toBe("410 stream_gone");
    const outcomes = [
      streams.append(post("s", "x")),
      streams.append(post("s", "", { close: true })),
      streams.ingest({ ...json, path: "s", records: [bytes("1")], producer: null, create: true }),
      streams.remove("s"),
      streams.create(put("s")),
      streams.create(fork("g", "s")),
    ].map(outcome);
    expect(outcomes).toEqual([
      "410 stream_gone",
      "410 stream_gone",
      "410 stream_gone",
      "410 stream_gone",
      "409 path_held",
      "409 source_gone",
    ]);
    const read = streams.read("s", "-1", { maxBytes: 9, touch: true });
    expect(isRefused(read) && outcome(read)).toBe("410 stream_gone");
    const { results } = streams.applyDirect(directFrame([ingested("s", ["1"])]));
    expect(results.map(({ status }) => status)).toEqual([410]);
    expect(streams.list("", "", 9).map(({ path }) => path)).toEqual(["f"]);
    journal.commit();
    expect(contents(streams, "f")).toEqual(["ab", "cde", "f"]);
  });

  test("that was deleted goes with its last fork; the path then starts another life", () => {
    const { streams, journal, store } = source();
    streams.create(fork("f", "s"));
    streams.create(fork("g", "s"));
    streams.remove("s");
    streams.remove("f");
    journal.commit();
    expect([at(streams, "s"), store.count(streamId(1))]).toEqual(["410 stream_gone", 3]);
    streams.remove("g");
    expect(at(streams, "s")).toBe("404 stream_not_found");
    // Given back when no crash can bring the fork back.
    expect(store.count(streamId(1))).toBe(3);
    journal.commit();
    expect(store.bytesHeld).toBe(0);
    expect(outcome(streams.create(put("s")))).toBe("201");
    expect(at(streams, "s")).toBe(4);
  });

  test("lives on when its forks are deleted", () => {
    const { streams, journal } = source();
    streams.create(fork("f", "s"));
    streams.remove("f");
    journal.commit();
    expect(contents(streams, "s")).toEqual(["ab", "cde", "f"]);
    streams.remove("s");
    expect(at(streams, "s")).toBe("404 stream_not_found");
  });

  test("goes up the line, however long it is, and only as far as nobody else reads", () => {
    const { streams, journal, store } = source();
    const depth = 3000;
    const path = (level: number): string => (level === 0 ? "s" : `f${level}`);
    for (let level = 1; level <= depth; level++) {
      streams.create(fork(path(level), path(level - 1)));
      streams.append(post(path(level), "."));
    }
    streams.create(fork("other", path(10)));
    journal.commit();
    expect(contents(streams, path(depth)).join("")).toBe(`abcdef${".".repeat(depth)}`);
    for (let level = 0; level < depth; level++) {
      streams.remove(path(level));
    }
    expect(at(streams, path(11))).toBe("410 stream_gone");
    streams.remove(path(depth));
    expect(at(streams, path(11))).toBe("404 stream_not_found");
    expect(at(streams, path(10))).toBe("410 stream_gone");
    journal.commit();
    expect(contents(streams, "other").join("")).toBe("abcdef..........");
    streams.remove("other");
    journal.commit();
    expect([at(streams, "s"), store.bytesHeld]).toEqual(["404 stream_not_found", 0]);
  });
});

describe("forks and what is durable", () => {
  test("P17 every answer about a fork waits for what it was judged by", () => {
    const { streams, journal } = source();
    const held = (verdict: { lsn: number }): Reply => {
      const reply = new Reply();
      streams.hold(lsn(verdict.lsn), reply);
      return reply;
    };
    streams.append(post("s", "g"));
    const waiting = [
      held(streams.create(fork("f", "s"))),
      held(streams.create(fork("f", "s"))),
      held(readBatch(streams, "f")),
      held(streams.create(fork("x", "s", { offset: formatOffset(9, 9) }))),
      held(streams.remove("s")),
      held(streams.append(post("s", "x"))),
      held(streams.create(put("s"))),
      held(streams.create(fork("y", "s"))),
      held(streams.remove("f")),
      held(streams.append(post("s", "x"))),
    ];
    expect(waiting.map(({ state }) => state)).toEqual(waiting.map(() => "waiting"));
    journal.commit();
    expect(waiting.map(({ state }) => state)).toEqual(waiting.map(() => "sent"));
  });

  test("J25 J28 a crash brings forks back as they were, and no deleted source to life", () => {
    const from = source();
    const { streams, journal } = from;
    streams.create(fork("f", "s", { offset: formatOffset(1, 2), subOffset: 1 }));
    streams.append(post("f", "F"));
    streams.remove("s");
    journal.commit();
    streams.remove("f");
    const after = crashed(from);
    expect(contents(after.streams, "f")).toEqual(["ab", "c", "F"]);
    expect(at(after.streams, "s")).toBe("410 stream_gone");
    after.streams.remove("f");
    after.journal.commit();
    const last = crashed(after);
    expect(at(last.streams, "s")).toBe("404 stream_not_found");
    expect(last.store.bytesHeld).toBe(0);
  });

  test("a fork made of what is not durable yet is lost with it, not left without a source", () => {
    const from = bench();
    from.streams.create(put("s", { body: bytes("s") }));
    from.streams.create(fork("f", "s"));
    from.journal.commit(lsn(1));
    const after = crashed(from).streams;
    expect([at(after, "s"), at(after, "f")]).toEqual([1, "404 stream_not_found"]);
  });

  test("who follows the source is told of its end, who follows the fork of its own news only", () => {
    const { streams, journal } = source();
    streams.create(fork("f", "s"));
    journal.commit();
    const told: string[] = [];
    for (const path of ["s", "f"]) {
      streams.follow(path, { onAdvance: () => void told.push(path) });
    }
    streams.append(post("s", "x"));
    journal.commit();
    expect(told).toEqual(["s"]);
    streams.remove("s");
    journal.commit();
    expect(told).toEqual(["s", "s"]);
    streams.append(post("f", "x"));
    journal.commit();
    expect(told).toEqual(["s", "s", "f"]);
  });
});
