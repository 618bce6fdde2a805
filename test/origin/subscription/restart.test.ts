import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatOffset } from "../../../shared/protocol/mod.ts";
import { Glob } from "../../../origin/subscription/mod.ts";
import { contents, post, put, TestClock } from "../stream/harness.ts";
import {
  allOf,
  base,
  bodyOf,
  outcomeOf,
  pull,
  reportOf,
  type WakeJson,
  webhook,
  World,
} from "./world.ts";
import "../gateway/eventually.ts";

/** Everything a subscriber can see. */
const image = (world: World, ids: readonly string[]): unknown[] =>
  ids.map((id) => {
    const answer = world.subscriptions.get(id);
    return answer.kind === "done" ? answer.body : answer.code;
  });

describe("after a crash", () => {
  test("J25 definitions, cursors and keys are what they were", async () => {
    const world = new World();
    world.streams.create(put("events/old", { body: Buffer.from("x") }));
    world.subscriptions.put("s", webhook({ streams: ["n"], description: "d" }), base);
    world.subscriptions.put("p", pull({ leaseMs: 5000 }), "https://edge.test");
    world.subscriptions.put("gone", webhook(), base);
    world.subscriptions.remove("gone");
    world.subscriptions.addStreams("s", ["m"]);
    world.subscriptions.removeStream("s", "n");
    await world.commit();
    const ids = ["s", "p", "gone"];
    const again = world.crash();
    expect(image(again, ids)).toEqual(image(world, ids));
    expect(again.subscriptions.jwks().keys).toEqual(world.subscriptions.jwks().keys);
    expect(again.subscriptions.jwks().keys).toHaveLength(1);
    expect(again.subscriptions.stats()).toEqual(world.subscriptions.stats());
    expect(outcomeOf(again.subscriptions.put("gone", webhook(), base))).toBe("201");
  });

  test("an open wake is delivered again: same id, same generation, and the old token still reports", async () => {
    const world = new World();
    world.subscriptions.put("s", webhook(), base);
    world.streams.create(put("events/a", { body: Buffer.from("x") }));
    await world.commit();
    const before = world.last.json;
    const again = world.crash();
    await again.commit();
    expect(again.posts).toHaveLength(1);
    expect(again.last.json).toEqual(before);
    const report = reportOf(before, { acks: allOf(before), done: true });
    expect(bodyOf(again.subscriptions.callback("s", report))).toEqual({
      ok: true,
      next_wake: false,
    });
  });

  test("a claim holds for one more lease, then it is fenced", async () => {
    const world = new World();
    world.streams.create(put("wake/pool", { contentType: "application/json" }));
    world.subscriptions.put("s", pull(), base);
    world.streams.create(put("events/a", { body: Buffer.from("x") }));
    await world.commit();
    const wake = bodyOf<WakeJson>(world.claim());
    await world.advance(900);
    const again = world.crash();
    expect(outcomeOf(again.claim("s", "w2"))).toBe("already_claimed");
    await again.advance(900);
    expect(outcomeOf(again.subscriptions.ack("s", reportOf(wake)))).toBe("200");
    await again.advance(1000);
    expect(outcomeOf(again.subscriptions.ack("s", reportOf(wake)))).toBe("fenced");
    expect(bodyOf<WakeJson>(again.claim("s", "w2")).generation).toBe(2);
  });

  test("a wake whose event was lost gets one, and one that was there may come twice, under one generation", async () => {
    const world = new World();
    world.streams.create(put("wake/pool", { contentType: "application/json" }));
    world.subscriptions.put("s", pull(), base);
    world.streams.create(put("events/a", { body: Buffer.from("x") }));
    world.journal.commit();
    world.journal.commit();
    // The wake is durable, its event is not.
    const again = world.crash();
    await again.commit();
    const twice = again.crash();
    await twice.commit();
    const generations = contents(twice.streams, "wake/pool").map(
      (text) => JSON.parse(text).generation,
    );
    expect(generations).toEqual([1, 1]);
  });

  test("what happened while nobody was there to see it is found at the start", async () => {
    const world = new World();
    world.subscriptions.put("s", webhook({ streams: ["named"] }), base);
    world.streams.create(put("named"));
    await world.commit();
    // Durable with the last commit, the ops that follow from it are not.
    world.streams.create(put("events/a", { body: Buffer.from("x") }));
    world.streams.append(post("named", "y"));
    world.journal.commit();
    const again = world.crash();
    await again.commit();
    expect(again.posts).toHaveLength(1);
    expect(again.last.json.streams.map(({ path, has_pending }) => [path, has_pending])).toEqual([
      ["named", true],
      ["events/a", true],
    ]);
  });

  test("generations never come twice: not acknowledged, not told", async () => {
    const world = new World();
    world.subscriptions.put("s", webhook(), base);
    world.streams.create(put("events/a", { body: Buffer.from("x") }));
    world.journal.commit();
    expect([world.journal.reserved > world.journal.durable, world.posts.length]).toEqual([true, 0]);
    const again = world.crash();
    await again.commit();
    expect(again.last.json.generation).toBe(1);
  });
});

const paths = ["events/a", "events/b", "other"] as const;
const step = fc.oneof(
  fc.record({ do: fc.constant("create" as const), path: fc.constantFrom(...paths) }),
  fc.record({ do: fc.constant("append" as const), path: fc.constantFrom(...paths) }),
  fc.record({ do: fc.constant("remove" as const), path: fc.constantFrom(...paths) }),
  fc.record({
    do: fc.constantFrom("put", "end", "add", "drop", "claim", "ack", "done", "release" as const),
    path: fc.constantFrom("p", "q", "h"),
  }),
  fc.record({ do: fc.constant("answer" as const), path: fc.constantFrom("200", "done", "500") }),
  fc.record({ do: fc.constant("wait" as const), path: fc.constantFrom("500", "1500", "70000") }),
  fc.record({ do: fc.constant("crash" as const), path: fc.constant("") }),
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Plays against one world after the other and remembers what workers were told. */
class Play {
  world = new World([], new TestClock());
  readonly wakes: Map<string, WakeJson> = new Map();

  async perform({ do: what, path }: Step): Promise<void> {
    const { subscriptions, streams } = this.world;
    const wake = this.wakes.get(path);
    switch (what) {
      case "create":
        streams.create(put(path, { body: Buffer.from("x") }));
        break;
      case "append":
        streams.append(post(path, "y"));
        break;
      case "remove":
        streams.remove(path);
        break;
      case "put":
        subscriptions.put(path, path === "h" ? webhook() : pull({ glob: new Glob("**") }), base);
        break;
      case "end":
        subscriptions.remove(path);
        this.wakes.delete(path);
        break;
      case "add":
        subscriptions.addStreams(path, ["other"]);
        break;
      case "drop":
        subscriptions.removeStream(path, "other");
        break;
      case "claim":
        this.#claim(path);
        break;
      case "ack":
      case "done":
        if (wake !== undefined) {
          subscriptions.ack(path, reportOf(wake, { acks: allOf(wake), done: what === "done" }));
        }
        break;
      case "release":
        if (wake !== undefined) {
          subscriptions.release(path, reportOf(wake));
        }
        break;
      case "answer":
        await this.world.posts
          .at(-1)
          ?.answer(path === "500" ? 500 : 200, { done: path === "done" });
        break;
      case "wait":
        await this.world.advance(Number(path));
        break;
      case "crash":
        this.world = this.world.crash();
        break;
    }
  }

  #claim(id: string): void {
    const answer = this.world.claim(id);
    if (answer.kind === "done") {
      this.wakes.set(id, bodyOf<WakeJson>(answer));
    }
  }
}

test("J25 whatever happens, another process sees what this one saw", async () => {
  let opened = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 5, maxLength: 40, size: "max" }),
      async (steps) => {
        const play = new Play();
        play.world.streams.create(put("wake/pool", { contentType: "application/json" }));
        for (const path of ["p", "q", "h"] as const) {
          await play.perform({ do: "put", path });
        }
        for (const each of steps) {
          await play.perform(each);
          if (each.do !== "crash") {
            await play.world.commit();
          }
        }
        await play.world.commit();
        const ids = ["p", "q", "h"];
        const again = play.world.crash();
        const withoutFailures = (document: unknown): unknown => {
          const {
            status: _status,
            next_attempt_at: _at,
            ...rest
          } = document as Record<string, unknown>;
          return typeof document === "string" ? document : rest;
        };
        expect(image(again, ids).map(withoutFailures)).toEqual(
          image(play.world, ids).map(withoutFailures),
        );
        for (const id of ids) {
          const claimed = again.claim(id);
          opened += claimed.kind === "done" ? 1 : 0;
        }
        const { webhooksInFlight, wakesOpen } = again.subscriptions.stats();
        expect(webhooksInFlight).toBeLessThanOrEqual(wakesOpen);
      },
    ),
    { numRuns: 100 },
  );
  expect(opened).toBeGreaterThan(20);
});

test("after done, the cursor is at the tail that was told", async () => {
  const world = new World();
  world.subscriptions.put("s", webhook(), base);
  world.streams.create(put("events/a", { body: Buffer.from("abc") }));
  await world.commit();
  await world.last.answer(200, { done: true });
  await world.commit();
  const again = world.crash();
  await again.commit();
  expect(again.posts).toEqual([]);
  const [link] = bodyOf<{ streams: { acked_offset: string }[] }>(
    again.subscriptions.get("s"),
  ).streams;
  expect(link?.acked_offset).toBe(formatOffset(1, 3));
});
