import { describe, expect, test } from "vitest";
import { frameFlag } from "../../../shared/frame/mod.ts";
import {
  bench,
  type Bench,
  contents,
  crashed,
  greeted,
  ingested,
  outboxFrame,
  outcome,
  post,
} from "./harness.ts";

const buffer = "eu:0";

describe("HELLO", () => {
  test("names the journal and the high-water; said again it writes nothing", () => {
    const { streams, journal } = bench();
    const hello = { buffer, epoch: "e1", boot: 7, highestFsn: 3 };
    expect(streams.hello(hello)).toEqual({
      welcome: { journalId: "j-test", buffer, durableFsn: 0, latestBoot: 0 },
      lsn: 1,
    });
    streams.hello(hello);
    streams.hello({ ...hello, boot: 6 });
    expect(journal.entries.length).toBe(1);
    streams.applyFrame(outboxFrame(1, [ingested("s", ["1"])], { boot: 7 }));
    expect(streams.hello({ ...hello, boot: 8 })).toEqual({
      welcome: { journalId: "j-test", buffer, durableFsn: 1, latestBoot: 7 },
      lsn: 3,
    });
  });

  test("F3 said again after a lost answer, it still tells which boots' rows are here", () => {
    const { streams } = greeted();
    streams.applyFrame(outboxFrame(1, [ingested("s", ["1"])]));
    streams.hello({ buffer, epoch: "e1", boot: 2, highestFsn: 1 });
    const { welcome } = streams.hello({ buffer, epoch: "e1", boot: 2, highestFsn: 1 });
    expect(welcome).toMatchObject({ durableFsn: 1, latestBoot: 1 });
  });

  test("F3 each outbox epoch keeps its own high-water", () => {
    const { streams } = greeted();
    streams.applyFrame(outboxFrame(1, [ingested("s", ["1"])]));
    const second = streams.hello({ buffer, epoch: "e2", boot: 2, highestFsn: 0 });
    expect(second.welcome.durableFsn).toBe(0);
    const first = streams.hello({ buffer, epoch: "e1", boot: 3, highestFsn: 5 });
    expect(first.welcome.durableFsn).toBe(1);
  });
});

describe("F12 the FSN", () => {
  const one = () => [ingested("s", ["1"])];

  test("frames apply in order, once; a replay is acknowledged and not applied", () => {
    const from = greeted();
    const { streams, journal } = from;
    expect(streams.applyFrame(outboxFrame(1, one()))).toEqual({ kind: "applied", fsn: 1, lsn: 2 });
    expect(streams.applyFrame(outboxFrame(2, one()))).toEqual({ kind: "applied", fsn: 2, lsn: 3 });
    expect(streams.applyFrame(outboxFrame(1, one()))).toEqual({ kind: "replayed", fsn: 1, lsn: 3 });
    expect(streams.applyFrame(outboxFrame(2, one()))).toEqual({ kind: "replayed", fsn: 2, lsn: 3 });
    expect(journal.entries.length).toBe(3);
    journal.commit();
    expect(contents(streams, "s")).toEqual(["1", "1"]);
    expect(streams.stats()).toMatchObject({ framesApplied: 2, framesReplayed: 2 });
  });

  test("a gap is refused with the expected FSN, a reordered frame likewise", () => {
    const { streams, journal } = greeted();
    expect(streams.applyFrame(outboxFrame(2, one()))).toMatchObject({
      kind: "refused",
      code: "frame_gap",
      retryable: true,
      expectedFsn: 1,
    });
    streams.applyFrame(outboxFrame(1, one()));
    expect(streams.applyFrame(outboxFrame(3, one()))).toMatchObject({
      code: "frame_gap",
      expectedFsn: 2,
    });
    expect(journal.entries.length).toBe(2);
  });

  test("without the HELLO of its boot a frame is refused", () => {
    const { streams } = bench();
    expect(streams.applyFrame(outboxFrame(1, one()))).toMatchObject({
      code: "hello_required",
      retryable: true,
      expectedFsn: 1,
    });
    greeted({ streams } as Bench);
    expect(streams.applyFrame(outboxFrame(1, one(), { boot: 2 }))).toMatchObject({
      code: "hello_required",
    });
    expect(streams.applyFrame(outboxFrame(1, one(), { epoch: "e9" }))).toMatchObject({
      code: "hello_required",
    });
    expect(streams.applyFrame(outboxFrame(1, one(), { buffer: "us:0" }))).toMatchObject({
      code: "hello_required",
    });
  });

  test("rows of an earlier boot follow those of the newest HELLO", () => {
    const { streams } = greeted();
    streams.hello({ buffer, epoch: "e1", boot: 5, highestFsn: 2 });
    expect(streams.applyFrame(outboxFrame(1, one(), { boot: 1 }))).toMatchObject({
      kind: "applied",
    });
    expect(streams.applyFrame(outboxFrame(2, one(), { boot: 5 }))).toMatchObject({
      kind: "applied",
    });
  });

  test("an epoch that was followed by another is stale, its replays are still acknowledged", () => {
    const { streams } = greeted();
    streams.applyFrame(outboxFrame(1, one()));
    streams.hello({ buffer, epoch: "e2", boot: 2, highestFsn: 0 });
    expect(streams.applyFrame(outboxFrame(2, one()))).toMatchObject({
      kind: "refused",
      code: "stale_outbox_epoch",
      retryable: false,
    });
    expect(streams.applyFrame(outboxFrame(1, one()))).toMatchObject({ kind: "replayed" });
    expect(streams.applyFrame(outboxFrame(1, one(), { epoch: "e2", boot: 2 }))).toMatchObject({
      kind: "applied",
    });
  });

  test("F2 F5 the epoch that said HELLO last goes on, whatever boots the others had; an overtaken one says HELLO again", () => {
    const { streams, journal } = greeted();
    const [e2, e3] = [
      { epoch: "e2", boot: Number.MAX_SAFE_INTEGER },
      { epoch: "e3", boot: 4 },
    ];
    const said = (outbox: typeof e2): void => {
      streams.hello({ buffer, ...outbox, highestFsn: 0 });
    };
    said(e2);
    said(e3);
    expect(streams.applyFrame(outboxFrame(1, one(), e3))).toMatchObject({ kind: "applied" });
    expect(streams.applyFrame(outboxFrame(1, one(), e2))).toMatchObject({
      code: "stale_outbox_epoch",
    });
    said(e2);
    expect(streams.applyFrame(outboxFrame(1, one(), e2))).toMatchObject({ kind: "applied" });
    said(e3);
    expect(streams.applyFrame(outboxFrame(1, one(), e3))).toMatchObject({ kind: "replayed" });
    expect(streams.applyFrame(outboxFrame(2, one(), e3))).toMatchObject({ kind: "applied" });
    const entries = journal.entries.length;
    said(e3);
    expect(journal.entries.length).toBe(entries);
  });

  test("F3 a row newer than any applied one is no replay, though its FSN was used", () => {
    const { streams, journal } = greeted();
    streams.applyFrame(outboxFrame(1, one()));
    streams.applyFrame(outboxFrame(2, one()));
    streams.hello({ buffer, epoch: "e1", boot: 2, highestFsn: 2 });
    const before = journal.entries.length;
    expect(streams.applyFrame(outboxFrame(2, [ingested("s", ["new"])], { boot: 2 }))).toMatchObject(
      {
        kind: "refused",
        code: "stale_outbox_epoch",
        expectedFsn: 3,
      },
    );
    expect(journal.entries.length).toBe(before);
  });

  test("a void frame moves the high-water and nothing else", () => {
    const { streams, journal } = greeted();
    streams.applyFrame(outboxFrame(1, [], { flags: frameFlag.void, voidReason: "bad_frame" }));
    expect(streams.applyFrame(outboxFrame(2, one()))).toMatchObject({ kind: "applied" });
    journal.commit();
    expect(streams.stats()).toMatchObject({
      framesApplied: 2,
      recordsStored: 1,
      recordsQuarantined: 0,
    });
  });

  test("it is in the data's own entry: a crash has both or neither", () => {
    const from = greeted();
    from.streams.applyFrame(outboxFrame(1, one()));
    from.journal.commit();
    from.streams.applyFrame(outboxFrame(2, [ingested("s", ["2"]), ingested("t", ["3"])]));
    const after = crashed(from);
    expect(
      after.streams.hello({ buffer, epoch: "e1", boot: 1, highestFsn: 2 }).welcome.durableFsn,
    ).toBe(1);
    expect(contents(after.streams, "s")).toEqual(["1"]);
    expect(outcome(after.streams.append(post("t", "x")))).toBe("404 stream_not_found");
    expect(after.streams.applyFrame(outboxFrame(1, one()))).toMatchObject({ kind: "replayed" });
    expect(after.streams.applyFrame(outboxFrame(2, [ingested("s", ["2"])]))).toMatchObject({
      kind: "applied",
    });
  });
});
