import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { lsn } from "../../../shared/ids/mod.ts";
import { OutputGate } from "../../../origin/stream/gate.ts";
import {
  bench,
  bytes,
  contents,
  crashed,
  isRefused,
  outboxFrame,
  outcome,
  post,
  put,
  readBatch,
  Reply,
  request,
  tag,
} from "./harness.ts";

describe("the output gate", () => {
  test("lets go at once what is durable, the rest in order of hold", () => {
    const gate = new OutputGate();
    const log: Reply[] = [];
    gate.advance(lsn(3));
    const done = new Reply(log);
    gate.hold(lsn(3), done);
    expect(done.state).toBe("sent");
    const [a, b, c] = [new Reply(log), new Reply(log), new Reply(log)];
    gate.hold(lsn(6), a);
    gate.hold(lsn(4), b);
    gate.hold(lsn(7), c);
    expect(gate.waiting).toBe(3);
    gate.advance(lsn(5));
    expect(log).toEqual([done]);
    gate.advance(lsn(6));
    expect(log).toEqual([done, a, b]);
    gate.advance(lsn(7));
    expect(log).toEqual([done, a, b, c]);
    expect(gate.waiting).toBe(0);
  });

  test("on failure every waiter fails, and so does who comes later, unless its entry is durable", () => {
    const gate = new OutputGate();
    gate.advance(lsn(1));
    const early = new Reply();
    gate.hold(lsn(2), early);
    gate.fail(new Error("first"));
    gate.fail(new Error("second"));
    const late = new Reply();
    gate.hold(lsn(2), late);
    const fine = new Reply();
    gate.hold(lsn(1), fine);
    expect([early.state, late.state, fine.state]).toEqual(["Error: first", "Error: first", "sent"]);
    expect(gate.waiting).toBe(0);
  });

  test("nobody leaves early or is forgotten, whatever the order, and across growth of the ring", () => {
    const step = fc.oneof(
      { arbitrary: fc.record({ hold: fc.nat(40) }), weight: 5 },
      { arbitrary: fc.record({ advance: fc.nat(6) }), weight: 5 },
      { arbitrary: fc.constant({ burst: 1500 }), weight: 1 },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const gate = new OutputGate();
        const waiting: { at: number; reply: Reply }[] = [];
        let [durable, reserved] = [0, 0];
        const hold = (at: number): void => {
          const reply = new Reply();
          gate.hold(lsn(at), reply);
          waiting.push({ at, reply });
        };
        for (const each of steps) {
          if ("hold" in each) {
            reserved = Math.max(reserved, durable + (each.hold % 7));
            hold(Math.min(each.hold, reserved));
          } else if ("burst" in each) {
            reserved += 1;
            for (let i = 0; i < each.burst; i++) {
              hold(reserved);
            }
          } else {
            durable = Math.min(reserved, durable + each.advance);
            gate.advance(lsn(durable));
          }
          const early = waiting.filter(({ at, reply }) => reply.state === "sent" && at > durable);
          expect(early).toEqual([]);
        }
        gate.advance(lsn(reserved));
        expect(waiting.every(({ reply }) => reply.state === "sent")).toBe(true);
        expect(gate.waiting).toBe(0);
      }),
      { numRuns: 60 },
    );
  });

  test("a waiter may hold again while it is let go", () => {
    const gate = new OutputGate();
    const second = new Reply();
    gate.hold(lsn(1), { release: () => gate.hold(lsn(2), second), fail: () => undefined });
    gate.advance(lsn(1));
    expect([second.state, gate.waiting]).toEqual(["waiting", 1]);
    gate.advance(lsn(2));
    expect(second.state).toBe("sent");
  });
});

/**
 * Connection 1 changes a stream and its commit is held; connection 2 asks for something that is judged by the
 * change. Each row: what 2 does, and what it would be told.
 */
const rows: [string, (b: ReturnType<typeof bench>) => { lsn: number; status: number }, number][] = [
  [
    "a duplicate",
    ({ streams }) => streams.append(post("s", "x", { producer: tag("P", 1, 0) })),
    204,
  ],
  [
    "a stale epoch",
    ({ streams }) => streams.append(post("s", "x", { producer: tag("P", 0, 0) })),
    403,
  ],
  ["a gap", ({ streams }) => streams.append(post("s", "x", { producer: tag("P", 1, 5) })), 409],
  ["an append", ({ streams }) => streams.append(post("s", "x")), 204],
  ["an idempotent create", ({ streams }) => streams.create(put("s")), 200],
  ["a conflicting create", ({ streams }) => streams.create(put("s", { ttlSeconds: 1 })), 409],
  [
    "a wrong content type",
    ({ streams }) => streams.append(post("s", "x", { contentType: "a/b" })),
    409,
  ],
  [
    "an expected offset",
    ({ streams }) => streams.append(post("s", "x", { expectedOffset: "-1" })),
    409,
  ],
  ["a HEAD", ({ streams }) => answered(streams.meta("s"), 200), 200],
  ["an append to a closed stream", ({ streams }) => streams.append(post("closed", "x")), 409],
  ["a second close", ({ streams }) => streams.append(post("closed", "", { close: true })), 204],
  ["an append to a deleted stream", ({ streams }) => streams.append(post("deleted", "x")), 404],
  ["a HEAD of a deleted stream", ({ streams }) => answered(streams.meta("deleted"), 200), 404],
  [
    "a GET of a deleted stream",
    ({ streams }) => answered(streams.read("deleted", "-1", { maxBytes: 1, touch: false }), 200),
    404,
  ],
  ["a second delete", ({ streams }) => streams.remove("deleted"), 404],
  [
    "a GET of a stream just made",
    ({ streams }) => answered(streams.read("new", "-1", { maxBytes: 1, touch: false }), 200),
    200,
  ],
  [
    "a HELLO",
    ({ streams }) => ({
      lsn: streams.hello({ buffer: "eu:0", epoch: "e1", boot: 1, highestFsn: 9 }).lsn,
      status: 200,
    }),
    200,
  ],
  [
    "a replayed frame",
    ({ streams }) => {
      const outcomeOfFrame = streams.applyFrame(outboxFrame(1, []));
      return {
        lsn: "lsn" in outcomeOfFrame ? outcomeOfFrame.lsn : -1,
        status: outcomeOfFrame.kind === "replayed" ? 200 : 0,
      };
    },
    200,
  ],
];

function answered<T extends { lsn: number }>(
  answer: T,
  status: number,
): { lsn: number; status: number } {
  return { lsn: answer.lsn, status: isRefused(answer) ? answer.status : status };
}

/** All of connection 1's changes are in the journal, none of them durable. */
function heldWorld() {
  const made = bench();
  const { streams, journal } = made;
  for (const path of ["s", "closed", "deleted"]) {
    streams.create(put(path, { body: bytes("first") }));
  }
  streams.hello({ buffer: "eu:0", epoch: "e1", boot: 1, highestFsn: 1 });
  journal.commit();
  streams.append(post("s", "second", { producer: tag("P", 1, 0) }));
  streams.append(post("closed", "last", { close: true }));
  streams.remove("deleted");
  streams.create(put("new"));
  streams.applyFrame(outboxFrame(1, [request("s", ["third"])]));
  return made;
}

describe("P17 every reply waits for what it was judged by", () => {
  test.each(rows)("%s, then the commit", (_, ask, status) => {
    const world = heldWorld();
    const answer = ask(world);
    const reply = new Reply();
    world.streams.hold(lsn(answer.lsn), reply);
    expect([answer.status, reply.state]).toEqual([status, "waiting"]);
    world.journal.commit();
    expect(reply.state).toBe("sent");
  });

  test.each(rows)("%s, then the failure", (_, ask) => {
    const world = heldWorld();
    const reply = new Reply();
    world.streams.hold(lsn(ask(world).lsn), reply);
    world.journal.fail();
    expect(reply.state).toBe("503 outcome_unknown");
    expect(world.streams.stats().waiting).toBe(0);
  });

  test("what was judged by durable entries alone does not wait", () => {
    const { streams, journal } = heldWorld();
    journal.commit();
    const replies: Reply[] = [];
    for (const verdict of [
      streams.append(post("closed", "x")),
      streams.append(post("s", "x", { producer: tag("P", 0, 0) })),
      streams.append(post("none", "x")),
      streams.meta("s"),
    ]) {
      const reply = new Reply();
      streams.hold(verdict.lsn, reply);
      replies.push(reply);
    }
    expect(replies.map(({ state }) => state)).toEqual(["sent", "sent", "sent", "sent"]);
  });

  test("readers see nothing of a held commit, nor after its failure, and reads go on", () => {
    const { streams, journal } = heldWorld();
    expect(contents(streams, "s")).toEqual(["first"]);
    expect(readBatch(streams, "closed")).toMatchObject({ closed: false, upToDate: true });
    journal.fail();
    expect(contents(streams, "s")).toEqual(["first"]);
    expect(readBatch(streams, "closed").closed).toBe(false);
    expect(() => streams.append(post("s", "x"))).toThrow(
      expect.objectContaining({ code: "journal_failed" }),
    );
  });

  test("J28 after the crash what failed never was, and what was durable stays", () => {
    const world = heldWorld();
    world.journal.fail();
    const after = crashed(world);
    expect(contents(after.streams, "s")).toEqual(["first"]);
    expect(contents(after.streams, "deleted")).toEqual(["first"]);
    expect(outcome(after.streams.append(post("closed", "more")))).toBe("204");
    expect(outcome(after.streams.append(post("s", "x", { producer: tag("P", 0, 0) })))).toBe("200");

    const durable = heldWorld();
    durable.journal.commit();
    const kept = crashed(durable);
    expect(outcome(kept.streams.append(post("deleted", "x")))).toBe("404 stream_not_found");
    expect(outcome(kept.streams.append(post("closed", "x")))).toBe("409 stream_closed");
    expect(outcome(kept.streams.append(post("s", "x", { producer: tag("P", 0, 0) })))).toBe(
      "403 stale_epoch",
    );
    expect(contents(kept.streams, "s")).toEqual(["first", "second", "third"]);
  });

  test("P10 a reply that left is seen by every reader", () => {
    const { streams, journal } = bench();
    streams.create(put("s"));
    journal.commit();
    const seen: string[][] = [];
    const verdict = streams.append(post("s", "x"));
    streams.hold(verdict.lsn, {
      release: () => void seen.push(contents(streams, "s")),
      fail: () => undefined,
    });
    journal.commit();
    expect(seen).toEqual([["x"]]);
  });
});
