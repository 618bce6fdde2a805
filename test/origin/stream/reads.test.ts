import { describe, expect, test } from "vitest";
import type { OwnedStreams } from "../../../origin/stream/mod.ts";
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
  text,
} from "./harness.ts";

const refusal = (streams: OwnedStreams, path: string, offset: string, id?: number) => {
  const how = { maxBytes: 100, touch: false };
  const answer = streams.read(path, offset, id === undefined ? how : { ...how, id });
  if (!isRefused(answer)) {
    throw new Error("the read was not refused");
  }
  return answer;
};

function three() {
  const made = bench();
  made.streams.create(put("s", { body: bytes("one") }));
  made.streams.append(post("s", "three"));
  made.streams.append(post("s", "five!"));
  made.journal.commit();
  return made;
}

describe("reading", () => {
  test("from the start, from an offset, from the tail, each saying where it ended", () => {
    const { streams } = three();
    const all = readBatch(streams, "s");
    expect(all.records.map(text)).toEqual(["one", "three", "five!"]);
    expect(all).toMatchObject({
      id: 1,
      start: "0000000000000000_0000000000000000",
      next: "0000000000000003_000000000000000d",
      upToDate: true,
      closed: false,
      lsn: 1,
    });
    const some = readBatch(streams, "s", "0000000000000001_0000000000000003");
    expect(some.records.map(text)).toEqual(["three", "five!"]);
    const none = readBatch(streams, "s", all.next);
    expect(none.records).toEqual([]);
    expect(none).toMatchObject({ start: all.next, next: all.next, upToDate: true });
    expect(readBatch(streams, "s", "now")).toMatchObject({ start: all.next, next: all.next });
  });

  test("P7 cut at a record boundary it is not up to date, and its end leads on", () => {
    const { streams } = three();
    const first = readBatch(streams, "s", "-1", 8);
    expect(first.records.map(text)).toEqual(["one", "three"]);
    expect(first).toMatchObject({ next: "0000000000000002_0000000000000008", upToDate: false });
    expect(readBatch(streams, "s", first.next, 1).records.map(text)).toEqual(["five!"]);
  });

  test("only a batch that reaches the end says closed", () => {
    const { streams, journal } = three();
    streams.append(post("s", "", { close: true }));
    expect(readBatch(streams, "s").closed).toBe(false);
    journal.commit();
    expect(readBatch(streams, "s", "-1", 3)).toMatchObject({ upToDate: false, closed: false });
    expect(readBatch(streams, "s")).toMatchObject({ upToDate: true, closed: true });
    expect(readBatch(streams, "s", "now")).toMatchObject({ upToDate: true, closed: true });
  });

  test("P11 a bad offset is refused with the tail, never echoed", () => {
    const { streams } = three();
    const tail = "0000000000000003_000000000000000d";
    for (const offset of [
      "",
      "0,1",
      "0_0",
      "../x",
      "0000000000000004_0000000000000011", // past the tail
      "0000000000000003_000000000000000e", // the tail's record, another byte
      "0000000000000001_0000000000000004", // within a record
      "0000000000000000_0000000000000003",
      "0000000000000001_000000000000000D", // not as it was given
      "ffffffffffffffff_ffffffffffffffff",
    ]) {
      const answer = refusal(streams, "s", offset);
      expect(outcome(answer)).toBe("400 bad_offset");
      expect(headersOf(answer)).toEqual({ "stream-next-offset": tail });
    }
  });

  test("P11 what is not durable yet is past the tail", () => {
    const { streams, journal } = three();
    const verdict = streams.append(post("s", "x"));
    const reserved = headersOf(verdict)["stream-next-offset"] ?? "";
    expect(outcome(refusal(streams, "s", reserved))).toBe("400 bad_offset");
    expect(contents(streams, "s")).toEqual(["one", "three", "five!"]);
    journal.commit();
    expect(readBatch(streams, "s", reserved)).toMatchObject({ upToDate: true });
  });

  test("P10 a stream just made is there at once; its answer waits for the creation", () => {
    const { streams, journal } = bench();
    const made = streams.create(put("s", { body: bytes("x") }));
    const early = readBatch(streams, "s");
    expect(early).toMatchObject({ records: [], upToDate: true, lsn: made.lsn });
    expect(early.lsn).toBeGreaterThan(journal.durable);
    journal.commit();
    expect(contents(streams, "s")).toEqual(["x"]);
  });

  test("a reader that names the stream's life is not given another one's records", () => {
    const { streams, journal } = three();
    const { id, next } = readBatch(streams, "s");
    streams.remove("s");
    streams.create(put("s", { body: bytes("0123456789abc") }));
    journal.commit();
    expect(outcome(refusal(streams, "s", next, id))).toBe("410 stream_gone");
    expect(outcome(refusal(streams, "s", next))).toBe("400 bad_offset");
    expect(readBatch(streams, "s").id).toBe(2);
  });

  test("a stream that is not there is 404, judged by the newest end of any", () => {
    const { streams, journal } = three();
    expect(refusal(streams, "none", "-1").lsn).toBe(0);
    streams.remove("s");
    const gone = refusal(streams, "s", "-1");
    expect([outcome(gone), gone.lsn]).toEqual(["404 stream_not_found", journal.reserved]);
    expect(refusal(streams, "none", "-1").lsn).toBe(journal.reserved);
  });
});
