import { describe, expect, test } from "vitest";
import { requestFlag } from "../../../shared/frame/mod.ts";
import { limits } from "../../../shared/limits.ts";
import {
  bench,
  type Bench,
  contents,
  crashed,
  directFrame,
  greeted,
  ingested,
  isRefused,
  outboxFrame,
  outcome,
  post,
  put,
  quarantine,
  request,
  tag,
} from "./harness.ts";

const codes = (from: Bench): unknown[] => quarantine(from).map(({ code }) => code);

describe("an outbox frame, record by record", () => {
  test("stores, creates and orders within one entry", () => {
    const from = greeted();
    const { streams, journal } = from;
    streams.create(put("plain"));
    const before = journal.entries.length;
    streams.applyFrame(
      outboxFrame(1, [
        request("plain", ["a"]),
        ingested("made", ["1", "2"]),
        request("plain", ["b"]),
        ingested("made", ["[3]"]),
        request("made", ["[4,5]"], { contentType: "application/json" }),
      ]),
    );
    expect(journal.entries.length).toBe(before + 1);
    journal.commit();
    expect(contents(streams, "plain")).toEqual(["a", "b"]);
    expect(contents(streams, "made")).toEqual(["1", "2", "[3]", "4", "5"]);
    expect(streams.stats()).toMatchObject({ recordsStored: 7, recordsQuarantined: 0 });
  });

  test("F12 a producer's requests are deduplicated, within the frame too", () => {
    const from = greeted();
    const { streams, journal } = from;
    const by = (seq: number, record: string) =>
      ingested("s", [record], { producer: tag("P", 0, seq) });
    streams.applyFrame(
      outboxFrame(1, [by(0, "0"), by(1, "1"), by(1, "1 again"), by(0, "0 again")]),
    );
    streams.applyFrame(outboxFrame(2, [by(1, "1 once more"), by(2, "2")]));
    journal.commit();
    expect(contents(streams, "s")).toEqual(["0", "1", "2"]);
    expect(streams.stats()).toMatchObject({
      recordsStored: 3,
      recordsDeduplicated: 3,
      recordsQuarantined: 0,
    });
  });

  test("F12 a roaming producer loses nothing: the second outbox drains first", () => {
    const from = greeted();
    const { streams, journal } = from;
    streams.hello({ buffer: "us:0", epoch: "u1", boot: 1, highestFsn: 0 });
    const by = (seq: number) => ingested("s", [String(seq)], { producer: tag("P", 0, seq) });
    const us = { buffer: "us:0", epoch: "u1" };
    streams.applyFrame(outboxFrame(1, [by(5), by(6), by(7)], us));
    streams.applyFrame(outboxFrame(1, [by(0), by(1), by(2)]));
    streams.applyFrame(outboxFrame(2, [by(3), by(4)]));
    streams.applyFrame(outboxFrame(2, [by(2), by(7), by(8)], us));
    journal.commit();
    expect(contents(streams, "s")).toEqual(["5", "6", "7", "0", "1", "2", "3", "4", "8"]);
    expect(streams.stats()).toMatchObject({ recordsStored: 9, recordsDeduplicated: 2 });
  });

  test("F12 mixed levels lose nothing: a direct retry fills the hole that an outbox left", () => {
    const { streams, journal } = greeted();
    const by = (seq: number) => ingested("s", [String(seq)], { producer: tag("P", 0, seq) });
    streams.applyFrame(outboxFrame(1, [by(0), by(2)]));
    const direct = post("s", "1", { contentType: "application/json", producer: tag("P", 0, 1) });
    expect(outcome(streams.append(direct))).toBe("200");
    expect(outcome(streams.append(direct))).toBe("204");
    streams.applyFrame(outboxFrame(2, [by(1), by(3)]));
    journal.commit();
    expect(contents(streams, "s")).toEqual(["0", "2", "1", "3"]);
  });

  test("F12 below the window: quarantined as seq_too_old, never dropped", () => {
    const from = greeted();
    const by = (seq: number) => ingested("s", [String(seq)], { producer: tag("P", 0, seq) });
    from.streams.applyFrame(outboxFrame(1, [by(100), by(36), by(37)]));
    expect(quarantine(from)).toMatchObject([
      {
        stream: "s",
        code: "seq_too_old",
        index: 1,
        producer: { id: "P", epoch: 0, seq: 36 },
        records: [{ text: "36" }],
      },
    ]);
    expect(contents(from.streams, "s")).toEqual(["100", "37"]);
  });

  test("F13 F20 what cannot be stored goes to quarantine with its code and blocks nothing", () => {
    const from = greeted();
    const { streams, clock } = from;
    const plain = "text/plain";
    streams.create(put("open"));
    streams.create(put("closed", { closed: true }));
    streams.create(put("json", { contentType: "application/json" }));
    streams.append(post("open", "x", { producer: tag("P", 3, 0), streamSeq: "5" }));
    streams.create(put("deleted"));
    streams.remove("deleted");
    clock.advance(5000);
    streams.create(put("again"));
    const late = { acceptedAt: clock.now() };
    const split = requestFlag.json;
    const frame = outboxFrame(1, [
      request("open", ["1"], { ...late, contentType: "image/png" }),
      request("closed", ["2"], late),
      request("none", ["3"], late),
      request("deleted", ["4"], late),
      request("again", ["5"], { acceptedAt: clock.now() - limits.edgeClockSkewMsMax - 1 }),
      request("_forebay/quarantine", ["6"], { ...late, flags: requestFlag.create }),
      request("open", ["7"], { ...late, producer: tag("P", 2, 9) }),
      request("json", ["{"], { ...late, contentType: "application/json" }),
      request("json", ["[]"], { ...late, contentType: "application/json" }),
      request("open", ["10"], { ...late, contentType: null }),
      request("open", ["11"], { ...late, streamSeq: "4" }),
      request("open", ["12", "13"], late),
      request("open", ["14"], { ...late, flags: split, contentType: null }),
      request("open", [""], late),
      request("made", ["15"], { ...late, flags: requestFlag.create, contentType: "?" }),
      request("open", ["stored"], late),
      request("again", ["stored"], late),
    ]);
    expect(streams.applyFrame(frame)).toMatchObject({ kind: "applied", fsn: 1 });
    expect(quarantine(from).map(({ index, code }) => [index, code])).toEqual([
      [0, "content_type_mismatch"],
      [1, "stream_closed"],
      [2, "stream_not_found"],
      [3, "stream_not_found"],
      [4, "stream_recreated"],
      [5, "reserved_path"],
      [6, "stale_epoch"],
      [7, "bad_json"],
      [8, "empty_array"],
      [9, "missing_content_type"],
      [10, "stream_seq_regression"],
      [11, "bad_frame"],
      [12, "content_type_mismatch"],
      [13, "empty_body"],
      [14, "bad_header"],
    ]);
    expect(contents(streams, "open")).toEqual(["x", "stored"]);
    expect(contents(streams, "again")).toEqual(["stored"]);
    expect(isRefused(streams.meta("made"))).toBe(true);
    expect(plain).toBe(frame.requests[15]?.contentType);
    expect(streams.applyFrame(outboxFrame(2, [request("open", ["next"], late)]))).toMatchObject({
      kind: "applied",
    });
  });

  test("P14 what an edge should not have sent is quarantined, never stored where nobody finds it", () => {
    const from = greeted();
    const made = { flags: requestFlag.create, contentType: "text/plain" };
    from.streams.applyFrame(
      outboxFrame(1, [
        request("a//b", ["1"], made),
        request("%61", ["2"], made),
        request("", ["3"], made),
        request("s", ["4"], { ...made, contentType: "text/plain; x=\r\nevil: 1" }),
        request("s", ["5"], { ...made, producer: tag("x".repeat(257), 0, 0) }),
        request("s", ["6"], { ...made, producer: tag("", 0, 0) }),
        request("s", ["7"], { ...made, streamSeq: "x".repeat(257) }),
        ingested("s", ["8".repeat(limits.recordBytesMax + 1)]),
      ]),
    );
    expect(codes(from)).toEqual([
      "bad_path",
      "bad_path",
      "bad_path",
      "bad_header",
      "bad_producer",
      "bad_producer",
      "bad_header",
      "record_too_large",
    ]);
    expect(from.streams.list("", "", 9).map(({ path }) => path)).toEqual(["_forebay/quarantine"]);
  });

  test("a request that is refused makes no stream, and the next one may", () => {
    const from = greeted();
    from.streams.applyFrame(
      outboxFrame(1, [
        request("s", ["{"], { flags: requestFlag.create, contentType: "application/json" }),
        ingested("s", ["1"]),
        ingested("t", ["2"], { producer: tag("P", 0, 0) }),
      ]),
    );
    expect(codes(from)).toEqual(["bad_json"]);
    expect(contents(from.streams, "s")).toEqual(["1"]);
    expect(contents(from.streams, "t")).toEqual(["2"]);
  });

  test("a flood of fresh producers in one frame stops at the limit", () => {
    const from = greeted();
    const requests = Array.from({ length: limits.producersPerStreamMax + 3 }, (_, i) =>
      ingested("s", [String(i)], { producer: tag(`p${i}`, 0, 0) }),
    );
    from.streams.applyFrame(outboxFrame(1, requests));
    expect(codes(from)).toEqual(["too_many_producers", "too_many_producers", "too_many_producers"]);
    expect(from.streams.stats()).toMatchObject({
      producers: limits.producersPerStreamMax,
      recordsStored: limits.producersPerStreamMax,
    });
  });

  test("a full store or journal refuses the whole frame, and it applies when there is room", () => {
    const from = greeted(bench({ storeBytesMax: 5000 }));
    const { streams, journal } = from;
    const big = outboxFrame(1, [
      ingested("s", [JSON.stringify("x".repeat(6000))]),
      ingested("s", ["1"]),
    ]);
    expect(streams.applyFrame(big)).toMatchObject({
      kind: "refused",
      code: "store_full",
      retryable: true,
      expectedFsn: 1,
    });
    expect(journal.entries.length).toBe(1);
    journal.fail();
    expect(() => streams.applyFrame(outboxFrame(1, [ingested("s", ["1"])]))).toThrow(
      expect.objectContaining({ code: "journal_failed" }),
    );
    journal.refusal = null;
    expect(streams.applyFrame(outboxFrame(1, [ingested("s", ["1"])]))).toMatchObject({
      kind: "applied",
    });
  });

  test("what would go to quarantine counts as well, before anything is consumed", () => {
    const { streams, journal } = greeted(bench({ storeBytesMax: 5000 }));
    const frame = outboxFrame(1, [request("none", ["x".repeat(6000)])]);
    expect(streams.applyFrame(frame)).toMatchObject({ kind: "refused", code: "store_full" });
    expect(journal.entries.length).toBe(1);
  });

  test("P9 a frame that is refused as a whole moves no producer", () => {
    const { streams, journal } = greeted();
    const by = (seq: number) => ({ contentType: "application/json", producer: tag("P", 0, seq) });
    streams.applyFrame(outboxFrame(1, [ingested("s", ["0"], by(0))]));
    const second = outboxFrame(2, [ingested("s", ["1"], by(1)), ingested("s", ["2"], by(2))]);
    journal.fail();
    expect(() => streams.applyFrame(second)).toThrow(
      expect.objectContaining({ code: "journal_failed" }),
    );
    journal.refusal = null;
    expect(outcome(streams.append(post("s", "1", by(1))))).toBe("200");
    streams.applyFrame(second);
    journal.commit();
    expect(contents(streams, "s")).toEqual(["0", "1", "2"]);
  });

  test("an entry that would become too long is refused as a whole", () => {
    const { streams, journal } = greeted();
    const path = `none/${"x".repeat(1000)}`;
    const requests = Array.from({ length: 9000 }, () => request(path, ["x"]));
    expect(streams.applyFrame(outboxFrame(1, requests))).toMatchObject({
      kind: "refused",
      code: "frame_too_large",
      retryable: false,
      expectedFsn: 1,
    });
    expect(journal.entries.length).toBe(1);
  });
});

describe("earlier lives of a path", () => {
  const at = 1_700_000_000_000;

  test("J28 a late record does not bring a deleted stream back, one accepted afterwards begins a new life", () => {
    const from = greeted();
    const { streams, clock } = from;
    streams.create(put("s", { contentType: "application/json" }));
    clock.advance(60_000);
    streams.remove("s");
    clock.advance(60_000);
    streams.applyFrame(
      outboxFrame(1, [
        ingested("s", ['"late"'], { acceptedAt: at + 30_000 }),
        ingested("s", ['"new"'], { acceptedAt: at + 90_000 }),
        ingested("s", ['"late too"'], { acceptedAt: at + 40_000 }),
      ]),
    );
    expect(codes(from)).toEqual(["stream_gone", "stream_recreated"]);
    expect(contents(from.streams, "s")).toEqual(['"new"']);
  });

  test("a stream that frames made takes records of other outboxes accepted before its first one", () => {
    const from = greeted();
    from.clock.advance(3_600_000);
    from.streams.applyFrame(
      outboxFrame(1, [
        ingested("s", ["2"], { acceptedAt: at + 2000 }),
        ingested("s", ["1"], { acceptedAt: at }),
        request("s", ["3"], { contentType: "application/json", acceptedAt: at + 3000 }),
      ]),
    );
    from.journal.commit();
    expect(contents(from.streams, "s")).toEqual(["2", "1", "3"]);
    expect(from.streams.stats().recordsQuarantined).toBe(0);
  });

  test("an edge whose clock is behind within the tolerance is believed", () => {
    const from = greeted();
    from.clock.advance(10_000);
    from.streams.create(put("s"));
    const created = from.clock.now();
    const skew = limits.edgeClockSkewMsMax;
    from.streams.applyFrame(
      outboxFrame(1, [
        request("s", ["within"], { acceptedAt: created - skew }),
        request("s", ["beyond"], { acceptedAt: created - skew - 1 }),
      ]),
    );
    expect(codes(from)).toEqual(["stream_recreated"]);
    expect(contents(from.streams, "s")).toEqual(["within"]);
  });

  test("so many ends are remembered, the oldest are forgotten first", () => {
    const from = greeted();
    const { streams } = from;
    const end = (path: string): void => {
      streams.create(put(path, { contentType: "application/json" }));
      streams.remove(path);
    };
    from.clock.advance(60_000);
    end("first");
    end("second");
    end("first");
    for (let i = 2; i < limits.endsRememberedMax; i++) {
      end(`s${i}`);
    }
    const late = (path: string) => ingested(path, ["1"], { acceptedAt: at });
    streams.applyFrame(outboxFrame(1, [late("first"), late("second")]));
    expect(codes(from)).toEqual(["stream_gone", "stream_gone"]);
    end("one more");
    streams.applyFrame(outboxFrame(2, [late("second"), late("first")]));
    expect(codes(from)).toEqual(["stream_gone", "stream_gone", "stream_gone"]);
    expect(contents(streams, "second")).toEqual(["1"]);
  }, 30_000);

  test("an expired stream counts like a deleted one", () => {
    const from = greeted();
    from.streams.create(put("s", { contentType: "application/json", ttlSeconds: 10 }));
    from.clock.advance(20_000);
    from.streams.applyFrame(outboxFrame(1, [ingested("s", ["1"], { acceptedAt: at + 5000 })]));
    expect(codes(from)).toEqual(["stream_gone"]);
  });
});

describe("a direct frame", () => {
  test("judges each request as its own POST and tells each its own tail", () => {
    const { streams, journal } = bench();
    streams.create(put("s"));
    journal.commit();
    const { results, lsn } = streams.applyDirect(
      directFrame([
        request("s", ["a"]),
        request("s", ["bb"], { producer: tag("P", 0, 0) }),
        request("s", ["again"], { producer: tag("P", 0, 0) }),
        request("none", ["x"]),
        request("s", ["x"], { contentType: "image/png" }),
        request("s", ["x", "y"]),
        ingested("made", ["1", "2"]),
        request("s", ["x"], { producer: tag("P", 0, 2) }),
        request("s", ["ccc"], { streamSeq: "1" }),
      ]),
    );
    expect(results.map(({ status, code }) => [status, code])).toEqual([
      [204, null],
      [200, null],
      [204, null],
      [404, "stream_not_found"],
      [409, "content_type_mismatch"],
      [400, "bad_frame"],
      [204, null],
      [409, "producer_gap"],
      [204, null],
    ]);
    expect(results.map(({ headers }) => headers["stream-next-offset"])).toEqual([
      "0000000000000001_0000000000000001",
      "0000000000000002_0000000000000003",
      "0000000000000002_0000000000000003",
      undefined,
      undefined,
      undefined,
      "0000000000000002_0000000000000002",
      undefined,
      "0000000000000003_0000000000000006",
    ]);
    expect(results[7]?.headers).toEqual({
      "producer-expected-seq": "1",
      "producer-received-seq": "2",
    });
    expect(lsn).toBe(journal.reserved);
    expect(journal.entries.length).toBe(1 + 4);
    journal.commit();
    expect(contents(streams, "s")).toEqual(["a", "bb", "ccc"]);
  });

  test("what the journal refuses fails alone, with its status", () => {
    const { streams, journal } = bench();
    streams.create(put("s"));
    journal.commit();
    journal.fail();
    const { results } = streams.applyDirect(
      directFrame([request("s", ["a"]), request("none", ["b"])]),
    );
    expect(results.map(({ status, code }) => [status, code])).toEqual([
      [503, "journal_failed"],
      [404, "stream_not_found"],
    ]);
  });

  test("P17 it waits for the newest entry of any of its requests, not of the last", () => {
    const { streams, journal } = bench();
    streams.create(put("s"));
    journal.commit();
    const { lsn } = streams.applyDirect(directFrame([request("s", ["a"]), request("none", ["b"])]));
    expect(lsn).toBe(2);
  });

  test("P12 a refusal that may be retried says when", () => {
    const { streams } = bench({ storeBytesMax: 3000 });
    streams.create(put("s"));
    const { results } = streams.applyDirect(
      directFrame([request("s", ["x".repeat(4000)]), request("none", ["b"])]),
    );
    expect(results.map(({ code, headers }) => [code, headers["retry-after"]])).toEqual([
      ["store_full", "1"],
      ["stream_not_found", undefined],
    ]);
  });

  test("an empty one waits for nothing", () => {
    expect(bench().streams.applyDirect(directFrame([]))).toEqual({ results: [], lsn: 0 });
  });
});

test("F21 J30 the ledger adds up: stored + deduplicated + quarantined = what frames brought, after a crash too", () => {
  const from = greeted();
  const { streams, journal } = from;
  streams.create(put("closed", { closed: true }));
  let brought = 0;
  for (let fsn = 1; fsn <= 30; fsn++) {
    const requests = Array.from({ length: fsn % 5 }, (_, i) => {
      const records = Array.from({ length: 1 + ((fsn + i) % 3) }, (__, n) => String(n));
      brought += records.length;
      const stream = i === 3 ? "closed" : "s";
      return ingested(stream, records, { producer: i === 1 ? tag("P", 0, fsn >> 1) : null });
    });
    streams.applyFrame(outboxFrame(fsn, requests));
    const { recordsStored, recordsDeduplicated, recordsQuarantined } = streams.stats();
    expect(recordsStored + recordsDeduplicated + recordsQuarantined).toBe(brought);
  }
  const stats = streams.stats();
  expect(stats.recordsDeduplicated).toBeGreaterThan(0);
  expect(stats.recordsQuarantined).toBeGreaterThan(0);
  journal.commit();
  expect(crashed(from).streams.stats()).toEqual(stats);
});
