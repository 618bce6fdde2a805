import { describe, expect, test } from "vitest";
import { limits } from "../../../shared/limits.ts";
import type { AppendRequest } from "../../../origin/stream/mod.ts";
import { bench, bytes, contents, headersOf, outcome, post, put, tag } from "./harness.ts";

/*
 * P1: each row makes a request that violates several rules at once; the one that the protocol checks first answers.
 * The stream: text/plain, Stream-Seq "05", producer P at epoch 3, seq 0..2, tail after three records.
 */
function world(closed: boolean) {
  const made = bench();
  const { streams, journal } = made;
  streams.create(put("s"));
  streams.append(post("s", "a", { producer: tag("P", 3, 0), streamSeq: "05" }));
  streams.append(post("s", "b", { producer: tag("P", 3, 1) }));
  streams.append(post("s", "c", { producer: tag("P", 3, 2), close: closed }));
  journal.commit();
  return made;
}

/** Everything about it is wrong. */
const wrong: Partial<AppendRequest> = {
  contentType: "application/json",
  streamSeq: "01",
  expectedOffset: "0000000000000009_0000000000000009",
};

describe("P1 order of checks", () => {
  test.each<[string, boolean, AppendRequest, string]>([
    [
      "404 before all",
      true,
      post("none", "x", { ...wrong, producer: tag("P", 0, 0) }),
      "404 stream_not_found",
    ],
    [
      "stale epoch, open",
      false,
      post("s", "x", { ...wrong, producer: tag("P", 2, 0) }),
      "403 stale_epoch",
    ],
    [
      "stale epoch even if closed",
      true,
      post("s", "x", { ...wrong, producer: tag("P", 2, 9) }),
      "403 stale_epoch",
    ],
    [
      "duplicate before closed",
      true,
      post("s", "x", { ...wrong, producer: tag("P", 3, 1) }),
      "204",
    ],
    [
      "duplicate before content type",
      false,
      post("s", "x", { ...wrong, producer: tag("P", 3, 2) }),
      "204",
    ],
    ["closed before content type", true, post("s", "x", wrong), "409 stream_closed"],
    [
      "closed before a gap",
      true,
      post("s", "x", { ...wrong, producer: tag("P", 3, 9) }),
      "409 stream_closed",
    ],
    [
      "closed before a bad epoch start",
      true,
      post("s", "x", { producer: tag("P", 4, 9) }),
      "409 stream_closed",
    ],
    [
      "content type before a gap",
      false,
      post("s", "x", { ...wrong, producer: tag("P", 3, 9) }),
      "409 content_type_mismatch",
    ],
    ["content type before Stream-Seq", false, post("s", "x", wrong), "409 content_type_mismatch"],
    [
      "gap before Stream-Seq",
      false,
      post("s", "x", { ...wrong, contentType: "text/plain", producer: tag("P", 3, 9) }),
      "409 producer_gap",
    ],
    [
      "bad epoch start before Stream-Seq",
      false,
      post("s", "x", { ...wrong, contentType: "text/plain", producer: tag("P", 4, 1) }),
      "400 bad_epoch_start",
    ],
    [
      "Stream-Seq before expected offset",
      false,
      post("s", "x", { ...wrong, contentType: "text/plain" }),
      "409 stream_seq_regression",
    ],
    [
      "Stream-Seq the same again",
      false,
      post("s", "x", { streamSeq: "05" }),
      "409 stream_seq_regression",
    ],
    ["expected offset", false, post("s", "x", { expectedOffset: "-1" }), "409 offset_mismatch"],
  ])("%s", (_, closed, request, expected) => {
    const { streams, journal } = world(closed);
    const before = journal.entries.length;
    const verdict = streams.append(request);
    expect(outcome(verdict)).toBe(expected);
    expect(journal.entries.length).toBe(before);
    expect(contents(streams, "s")).toEqual(["a", "b", "c"]);
  });

  test("a request that breaks no rule is stored", () => {
    const { streams, journal } = world(false);
    const verdict = streams.append(
      post("s", "d", {
        producer: tag("P", 3, 3),
        streamSeq: "06",
        expectedOffset: "0000000000000003_0000000000000003",
      }),
    );
    expect(outcome(verdict)).toBe("200");
    journal.commit();
    expect(contents(streams, "s")).toEqual(["a", "b", "c", "d"]);
  });

  test("what needs no stream is refused at once, before any check of it", () => {
    const { streams } = world(true);
    const large = { ...post("s", ""), body: new Uint8Array(limits.bodyBytesMax + 1) };
    const cases: [AppendRequest, string][] = [
      [large, "413 body_too_large"],
      [post("s", ""), "400 empty_body"],
      [post("none", ""), "400 empty_body"],
      [post("s", "x", { contentType: null }), "400 missing_content_type"],
      [post("_forebay/quarantine", "x"), "403 reserved_path"],
      [post("s", "x", { producer: tag("P", -1, 0) }), "400 bad_producer"],
      [post("s", "x", { producer: tag("P", 0, 0.5) }), "400 bad_producer"],
    ];
    for (const [request, expected] of cases) {
      const verdict = streams.append(request);
      expect(outcome(verdict)).toBe(expected);
      expect(verdict.lsn).toBe(0);
    }
  });
});

describe("what the answers carry", () => {
  const tail = "0000000000000003_0000000000000003";

  test("P1 a stale epoch names the newest one", () => {
    const { streams } = world(false);
    const verdict = streams.append(post("s", "x", { producer: tag("P", 1, 0) }));
    expect(headersOf(verdict)).toEqual({ "producer-epoch": "3" });
  });

  test("P1 a duplicate names the highest seq, not its own, and says when the stream is closed", () => {
    const open = world(false).streams.append(post("s", "other", { producer: tag("P", 3, 0) }));
    expect(headersOf(open)).toEqual({
      "stream-next-offset": tail,
      "producer-epoch": "3",
      "producer-seq": "2",
    });
    const closed = world(true).streams.append(
      post("s", "", { producer: tag("P", 3, 2), close: true }),
    );
    expect(outcome(closed)).toBe("204");
    expect(headersOf(closed)["stream-closed"]).toBe("true");
  });

  test("a gap names what is expected and what came", () => {
    const { streams } = world(false);
    expect(headersOf(streams.append(post("s", "x", { producer: tag("P", 3, 7) })))).toEqual({
      "producer-expected-seq": "3",
      "producer-received-seq": "7",
    });
    expect(headersOf(streams.append(post("s", "x", { producer: tag("Q", 0, 1) })))).toEqual({
      "producer-expected-seq": "0",
      "producer-received-seq": "1",
    });
  });

  test("a closed stream answers with its end", () => {
    const { streams } = world(true);
    expect(headersOf(streams.append(post("s", "x")))).toEqual({
      "stream-closed": "true",
      "stream-next-offset": tail,
    });
  });

  test("P16 a missed expected offset tells the tail", () => {
    const { streams } = world(false);
    const verdict = streams.append(
      post("s", "x", { expectedOffset: "0000000000000002_0000000000000002" }),
    );
    expect(headersOf(verdict)).toEqual({ "stream-next-offset": tail });
    expect(verdict.detail).toContain(tail);
  });

  test("an append is 204, one with a producer 200 with its epoch and seq, each with the new tail", () => {
    const { streams } = world(false);
    const bare = streams.append(post("s", "four"));
    expect([outcome(bare), headersOf(bare)]).toEqual([
      "204",
      { "stream-next-offset": "0000000000000004_0000000000000007" },
    ]);
    const produced = streams.append(post("s", "!", { producer: tag("P", 4, 0) }));
    expect([outcome(produced), headersOf(produced)]).toEqual([
      "200",
      {
        "stream-next-offset": "0000000000000005_0000000000000008",
        "producer-epoch": "4",
        "producer-seq": "0",
      },
    ]);
  });

  test("content types are the same by media type, whatever the case and parameters", () => {
    const { streams } = world(false);
    expect(
      outcome(streams.append(post("s", "x", { contentType: "TEXT/Plain;charset=utf-8" }))),
    ).toBe("204");
    expect(outcome(streams.append(post("s", "x", { contentType: "nonsense" })))).toBe(
      "400 bad_header",
    );
  });
});

describe("closing", () => {
  test("a bare close is 204 with the end, again and again, whatever its content type", () => {
    const { streams, journal } = bench();
    streams.create(put("s", { body: bytes("abc") }));
    const first = streams.append(post("s", "", { close: true, contentType: "image/png" }));
    const again = streams.append(post("s", "", { close: true, contentType: null }));
    const expected = {
      "stream-next-offset": "0000000000000001_0000000000000003",
      "stream-closed": "true",
    };
    expect([outcome(first), headersOf(first)]).toEqual(["204", expected]);
    expect([outcome(again), headersOf(again)]).toEqual(["204", expected]);
    expect(journal.entries.length).toBe(2);
  });

  test("append-and-close stores and closes in one entry; a second one is a conflict", () => {
    const { streams, journal } = bench();
    streams.create(put("s"));
    expect(outcome(streams.append(post("s", "last", { close: true })))).toBe("204");
    expect(journal.entries.length).toBe(2);
    expect(outcome(streams.append(post("s", "more", { close: true })))).toBe("409 stream_closed");
    journal.commit();
    expect(contents(streams, "s")).toEqual(["last"]);
  });

  test("a producer's close takes part in its sequence", () => {
    const { streams } = bench();
    streams.create(put("s"));
    expect(outcome(streams.append(post("s", "", { close: true, producer: tag("P", 0, 1) })))).toBe(
      "409 producer_gap",
    );
    const close = streams.append(post("s", "", { close: true, producer: tag("P", 0, 0) }));
    expect([outcome(close), headersOf(close)]).toEqual([
      "204",
      {
        "stream-next-offset": "0000000000000000_0000000000000000",
        "stream-closed": "true",
        "producer-epoch": "0",
        "producer-seq": "0",
      },
    ]);
    expect(outcome(streams.append(post("s", "", { close: true, producer: tag("P", 0, 0) })))).toBe(
      "204",
    );
    expect(outcome(streams.append(post("s", "", { close: true, producer: tag("P", 0, 1) })))).toBe(
      "409 stream_closed",
    );
    expect(outcome(streams.append(post("s", "", { close: true, producer: tag("Q", 0, 0) })))).toBe(
      "409 stream_closed",
    );
  });
});
