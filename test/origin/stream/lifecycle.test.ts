import { describe, expect, test } from "vitest";
import { ForebayError } from "../../../shared/errors/mod.ts";
import { limits } from "../../../shared/limits.ts";
import type { CreateRequest, OwnedStreams } from "../../../origin/stream/mod.ts";
import {
  bench,
  bytes,
  contents,
  headersOf,
  isRefused,
  outcome,
  post,
  put,
  readBatch,
  tag,
} from "./harness.ts";

const metaOf = (streams: OwnedStreams, path: string) => {
  const meta = streams.meta(path);
  return isRefused(meta) ? outcome(meta) : meta;
};

describe("creating", () => {
  test("201 with type and tail, 200 when it is there alike, 409 when it differs", () => {
    const { streams } = bench();
    const made = streams.create(
      put("s", { contentType: "Text/Plain; charset=utf-8", body: bytes("hi") }),
    );
    expect([outcome(made), headersOf(made)]).toEqual([
      "201",
      {
        "content-type": "Text/Plain; charset=utf-8",
        "stream-next-offset": "0000000000000001_0000000000000002",
      },
    ]);
    expect(outcome(streams.create(put("s", { body: bytes("ignored") })))).toBe("200");
    expect(outcome(streams.create(put("s", { contentType: "TEXT/PLAIN" })))).toBe("200");
    const other = streams.create(put("s", { contentType: "application/json" }));
    expect(outcome(other)).toBe("409 stream_conflict");
    expect(other.detail).toContain("Text/Plain; charset=utf-8");
  });

  const at = Date.parse("2030-01-01T00:00:00Z");
  const expiry = (text: string) => ({ text, ms: at });
  test.each<[string, Partial<CreateRequest>, Partial<CreateRequest>, string]>([
    ["the same TTL", { ttlSeconds: 60 }, { ttlSeconds: 60 }, "200"],
    ["another TTL", { ttlSeconds: 60 }, { ttlSeconds: 61 }, "409 stream_conflict"],
    ["no TTL", { ttlSeconds: 60 }, {}, "409 stream_conflict"],
    [
      "the same instant",
      { expiresAt: expiry("2030-01-01T00:00:00Z") },
      { expiresAt: expiry("2030-01-01T01:00:00+01:00") },
      "200",
    ],
    ["no instant", { expiresAt: expiry("2030-01-01T00:00:00Z") }, {}, "409 stream_conflict"],
    ["both closed", { closed: true }, { closed: true }, "200"],
    ["closed, then open", { closed: true }, {}, "409 stream_conflict"],
    ["open, then closed", {}, { closed: true }, "409 stream_conflict"],
  ])("again with %s", (_, first, second, expected) => {
    const { streams } = bench();
    expect(outcome(streams.create(put("s", first)))).toBe("201");
    expect(outcome(streams.create(put("s", second)))).toBe(expected);
  });

  test("closed, with and without a body", () => {
    const { streams, journal } = bench();
    const bare = streams.create(put("bare", { closed: true }));
    expect(headersOf(bare)["stream-closed"]).toBe("true");
    const full = streams.create(put("full", { closed: true, body: bytes("all there is") }));
    expect(headersOf(full)["stream-closed"]).toBe("true");
    expect(journal.entries.length).toBe(2);
    journal.commit();
    expect(readBatch(streams, "full").closed).toBe(true);
    expect(contents(streams, "full")).toEqual(["all there is"]);
    expect(outcome(streams.append(post("bare", "x")))).toBe("409 stream_closed");
  });

  test("without a content type it is application/octet-stream", () => {
    const { streams } = bench();
    streams.create(put("s", { contentType: null }));
    expect(metaOf(streams, "s")).toMatchObject({
      contentType: "application/octet-stream",
      json: false,
    });
    expect(outcome(streams.create(put("t", { contentType: "what?" })))).toBe("400 bad_header");
    expect(metaOf(streams, "t")).toBe("404 stream_not_found");
  });

  test("nobody creates or deletes what is Forebay's own", () => {
    const { streams, journal } = bench();
    expect(outcome(streams.create(put("_forebay/quarantine")))).toBe("403 reserved_path");
    expect(outcome(streams.remove("_forebay/quarantine"))).toBe("403 reserved_path");
    expect(journal.entries.length).toBe(0);
  });
});

describe("JSON mode", () => {
  const json = { contentType: "application/json" };

  test("one array level is flattened; the bytes stay as they came", () => {
    const { streams, journal } = bench();
    streams.create(put("s", json));
    streams.append(post("s", ' [1.0, {"b":1, "a" : 2},[[3]] ] ', json));
    streams.append(post("s", ' "x\\u0041" ', json));
    journal.commit();
    expect(contents(streams, "s")).toEqual(["1.0", '{"b":1, "a" : 2}', "[[3]]", '"x\\u0041"']);
  });

  test("PUT [] makes an empty stream, POST [] is refused", () => {
    const { streams, journal } = bench();
    expect(outcome(streams.create(put("s", { ...json, body: bytes("[]") })))).toBe("201");
    expect(outcome(streams.append(post("s", " [ ] ", json)))).toBe("400 empty_array");
    expect(journal.entries.length).toBe(1);
    journal.commit();
    expect(contents(streams, "s")).toEqual([]);
  });

  test("P9 a body that is no JSON changes nothing, the producer's seq included", () => {
    const { streams, journal } = bench();
    streams.create(put("s", json));
    const first = tag("P", 0, 0);
    expect(outcome(streams.append(post("s", "{ no }", { ...json, producer: first })))).toBe(
      "400 bad_json",
    );
    expect(outcome(streams.append(post("s", "[]", { ...json, producer: first })))).toBe(
      "400 empty_array",
    );
    expect(outcome(streams.create(put("t", { ...json, body: bytes("{") })))).toBe("400 bad_json");
    expect(metaOf(streams, "t")).toBe("404 stream_not_found");
    expect(journal.entries.length).toBe(1);
    expect(outcome(streams.append(post("s", "1", { ...json, producer: first })))).toBe("200");
  });

  test("too many records are refused with the limit", () => {
    const { streams } = bench();
    streams.create(put("s", json));
    const body = `[${"1,".repeat(limits.requestRecordsMax)}1]`;
    expect(outcome(streams.append(post("s", body, json)))).toBe("413 too_many_records");
    const records = Array.from({ length: limits.requestRecordsMax + 1 }, () => bytes("1"));
    const ingest = { path: "s", ...json, records, producer: null, create: true };
    expect(outcome(streams.ingest(ingest))).toBe("413 too_many_records");
  });
});

describe("ingest", () => {
  const ingest = (streams: OwnedStreams, path: string, records: string[], create: boolean) =>
    streams.ingest({
      path,
      contentType: "application/json",
      records: records.map(bytes),
      producer: null,
      create,
    });

  test("creates a missing stream in the entry of its first records, when it may", () => {
    const { streams, journal } = bench();
    expect(outcome(ingest(streams, "s", ["1", "2"], false))).toBe("404 stream_not_found");
    expect(outcome(ingest(streams, "s", ["1", "2"], true))).toBe("204");
    expect(journal.entries.length).toBe(1);
    expect(outcome(ingest(streams, "s", ["[3]"], true))).toBe("204");
    journal.commit();
    expect(contents(streams, "s")).toEqual(["1", "2", "[3]"]);
    expect(metaOf(streams, "s")).toMatchObject({ contentType: "application/json", json: true });
  });

  test("a producer's first request to a missing stream is seq 0", () => {
    const { streams, journal } = bench();
    const request = {
      path: "s",
      contentType: "application/json",
      records: [bytes("1")],
      create: true,
    };
    const gap = streams.ingest({ ...request, producer: tag("P", 0, 1) });
    expect([outcome(gap), headersOf(gap)["producer-expected-seq"]]).toEqual([
      "409 producer_gap",
      "0",
    ]);
    expect(outcome(streams.ingest({ ...request, producer: tag("P", 0, 0) }))).toBe("200");
    expect(outcome(streams.ingest({ ...request, producer: tag("P", 0, 0) }))).toBe("204");
    expect(journal.entries.length).toBe(1);
  });

  test("an empty record or none is refused", () => {
    const { streams } = bench();
    expect(outcome(ingest(streams, "s", [], true))).toBe("400 empty_body");
    expect(outcome(ingest(streams, "s", ["1", ""], true))).toBe("400 empty_body");
  });
});

describe("deleting", () => {
  test("204, then 404 for all, and the path can be created again with nothing of the old", () => {
    const { streams, journal } = bench();
    streams.create(put("s", { body: bytes("old") }));
    streams.append(post("s", "old too", { producer: tag("P", 7, 0), streamSeq: "9", close: true }));
    const first = metaOf(streams, "s");
    expect(outcome(streams.remove("s"))).toBe("204");
    expect(outcome(streams.remove("s"))).toBe("404 stream_not_found");
    expect(metaOf(streams, "s")).toBe("404 stream_not_found");
    expect(outcome(streams.append(post("s", "x")))).toBe("404 stream_not_found");
    expect(outcome(streams.create(put("s", { body: bytes("new") })))).toBe("201");
    expect(
      outcome(streams.append(post("s", "!", { producer: tag("P", 0, 0), streamSeq: "1" }))),
    ).toBe("200");
    journal.commit();
    expect(contents(streams, "s")).toEqual(["new", "!"]);
    expect(first).toMatchObject({ id: 1 });
    expect(metaOf(streams, "s")).toMatchObject({ id: 2 });
  });

  test("the records go when the delete is durable, not before", () => {
    const { streams, journal, store } = bench();
    streams.create(put("s", { body: bytes("x".repeat(1000)) }));
    journal.commit();
    const held = store.bytesHeld;
    streams.remove("s");
    expect(store.bytesHeld).toBe(held);
    journal.commit();
    expect(store.bytesHeld).toBe(0);
  });
});

describe("TTL and expiry", () => {
  test("P4 a sliding TTL moves on reads that touch, appends and closes, not on HEAD", () => {
    const { streams, clock, journal } = bench();
    const alive = (path: string) => metaOf(streams, path) !== "404 stream_not_found";
    for (const path of ["read", "now", "append", "close", "head", "quiet"]) {
      streams.create(put(path, { ttlSeconds: 2 }));
    }
    journal.commit();
    clock.advance(1500);
    streams.read("read", "-1", { maxBytes: 10, touch: true });
    streams.read("now", "now", { maxBytes: 10, touch: true });
    streams.append(post("append", "x"));
    streams.append(post("close", "", { close: true, producer: tag("P", 0, 0) }));
    streams.meta("head");
    streams.read("quiet", "-1", { maxBytes: 10, touch: false });
    clock.advance(1500);
    expect(["read", "now", "append", "close", "head", "quiet"].map(alive)).toEqual([
      true,
      true,
      true,
      true,
      false,
      false,
    ]);
    clock.advance(500);
    expect(alive("read")).toBe(false);
  });

  test("P4 Expires-At is fixed", () => {
    const { streams, clock, journal } = bench();
    const ms = clock.now() + 2000;
    streams.create(put("s", { expiresAt: { text: new Date(ms).toISOString(), ms } }));
    journal.commit();
    clock.advance(1999);
    streams.append(post("s", "x"));
    streams.read("s", "-1", { maxBytes: 10, touch: true });
    expect(metaOf(streams, "s")).toMatchObject({ closed: false });
    clock.advance(1);
    expect(metaOf(streams, "s")).toBe("404 stream_not_found");
    expect(outcome(streams.append(post("s", "x")))).toBe("404 stream_not_found");
  });

  test("the first answer that depends on an expiry journals it, the others do not", () => {
    const { streams, clock, journal } = bench();
    streams.create(put("s", { ttlSeconds: 1 }));
    clock.advance(1000);
    const first = streams.meta("s");
    expect(journal.entries.length).toBe(2);
    expect(first.lsn).toBe(2);
    expect(streams.meta("s").lsn).toBe(2);
    expect(streams.list("", "", 10)).toEqual([]);
    expect(journal.entries.length).toBe(2);
    expect(outcome(streams.create(put("s", { contentType: "application/json" })))).toBe("201");
  });

  test("P4 reads write nothing until the deadline moved by more than TTL/8", () => {
    const { streams, clock, journal } = bench();
    streams.create(put("s", { ttlSeconds: 80 }));
    journal.commit();
    for (let second = 1; second <= 10; second++) {
      clock.advance(1000);
      streams.read("s", "-1", { maxBytes: 10, touch: true });
    }
    expect(journal.entries.length).toBe(1);
    clock.advance(1);
    streams.read("s", "-1", { maxBytes: 10, touch: true });
    expect(journal.entries.length).toBe(2);
    expect(streams.meta("s").lsn).toBe(1);
  });

  test("a touch that cannot be written still moves the deadline", () => {
    const { streams, clock, journal } = bench();
    streams.create(put("s", { ttlSeconds: 2 }));
    journal.commit();
    clock.advance(1500);
    journal.fail();
    expect(readBatch(streams, "s").records).toEqual([]);
    streams.read("s", "-1", { maxBytes: 10, touch: true });
    clock.advance(1500);
    expect(metaOf(streams, "s")).toMatchObject({ contentType: "text/plain" });
  });
});

describe("producers", () => {
  test("a flood of fresh ids is refused with a code; the known ones go on", () => {
    const { streams, journal } = bench();
    streams.create(put("s"));
    for (let i = 0; i < limits.producersPerStreamMax; i++) {
      expect(outcome(streams.append(post("s", "x", { producer: tag(`p${i}`, 0, 0) })))).toBe("200");
    }
    const before = journal.entries.length;
    const refused = streams.append(post("s", "x", { producer: tag("one more", 0, 0) }));
    expect(outcome(refused)).toBe("429 too_many_producers");
    expect(journal.entries.length).toBe(before);
    expect(outcome(streams.append(post("s", "x", { producer: tag("p0", 0, 1) })))).toBe("200");
    expect(outcome(streams.append(post("s", "x")))).toBe("204");
    expect(streams.stats().producers).toBe(limits.producersPerStreamMax);
  });

  test("one idle for longer than the limit leaves, and makes place", () => {
    const { streams, clock } = bench();
    streams.create(put("s"));
    streams.append(post("s", "x", { producer: tag("old", 0, 0) }));
    clock.advance(1000);
    for (let i = 1; i < limits.producersPerStreamMax; i++) {
      streams.append(post("s", "x", { producer: tag(`p${i}`, 0, 0) }));
    }
    expect(outcome(streams.append(post("s", "x", { producer: tag("new", 0, 0) })))).toBe(
      "429 too_many_producers",
    );
    clock.advance(limits.producerIdleMsMax - 1000);
    expect(outcome(streams.append(post("s", "x", { producer: tag("new", 0, 0) })))).toBe(
      "429 too_many_producers",
    );
    clock.advance(1);
    expect(outcome(streams.append(post("s", "x", { producer: tag("new", 0, 0) })))).toBe("200");
    expect(outcome(streams.append(post("s", "x", { producer: tag("old", 0, 1) })))).toBe(
      "409 producer_gap",
    );
    expect(streams.stats().producers).toBe(limits.producersPerStreamMax);
  });
});

describe("a full store or journal", () => {
  test("a full store refuses before anything is consumed", () => {
    const { streams, journal } = bench({ storeBytesMax: 2000 });
    streams.create(put("s"));
    const producer = tag("P", 0, 0);
    const refused = streams.append(post("s", "x".repeat(3000), { producer }));
    expect(outcome(refused)).toBe("503 store_full");
    expect(journal.entries.length).toBe(1);
    expect(outcome(streams.append(post("s", "x", { producer })))).toBe("200");
  });

  test("J26 what the journal refuses changes nothing", () => {
    const { streams, journal } = bench();
    streams.create(put("s", { body: bytes("a") }));
    journal.commit();
    const before = JSON.stringify([streams.stats(), streams.list("", "", 9)]);
    journal.refusal = new ForebayError("disk_full", "no room");
    for (const attempt of [
      () => streams.append(post("s", "b", { producer: tag("P", 0, 0), streamSeq: "1" })),
      () => streams.append(post("s", "", { close: true })),
      () => streams.create(put("t")),
      () => streams.remove("s"),
      () => streams.hello({ buffer: "b", epoch: "e", boot: 1, highestFsn: 0 }),
    ]) {
      expect(attempt).toThrow(expect.objectContaining({ code: "disk_full" }));
    }
    journal.refusal = null;
    expect(JSON.stringify([streams.stats(), streams.list("", "", 9)])).toBe(before);
    expect(
      outcome(streams.append(post("s", "b", { producer: tag("P", 0, 0), streamSeq: "1" }))),
    ).toBe("200");
  });
});

describe("listing", () => {
  test("gives living streams below a prefix, by path, in pages", () => {
    const { streams } = bench();
    for (const path of ["b/2", "a/1", "b/1", "c", "b/3"]) {
      streams.create(put(path));
    }
    streams.remove("b/3");
    const paths = (prefix: string, after: string, limit: number) =>
      streams.list(prefix, after, limit).map(({ path }) => path);
    expect(paths("", "", 10)).toEqual(["a/1", "b/1", "b/2", "c"]);
    expect(paths("b/", "", 10)).toEqual(["b/1", "b/2"]);
    expect(paths("", "a/1", 2)).toEqual(["b/1", "b/2"]);
    expect(paths("", "c", 2)).toEqual([]);
  });
});
