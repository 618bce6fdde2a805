import { describe, expect, test } from "vitest";
import { limits } from "../../../shared/limits.ts";
import { formatOffset } from "../../../shared/protocol/mod.ts";
import { ForebayError } from "../../../shared/errors/mod.ts";
import { Glob } from "../../../origin/subscription/mod.ts";
import { post, put } from "../stream/harness.ts";
import { allOf, base, bodyOf, outcomeOf, reportOf, webhook, World } from "./world.ts";
import "../gateway/eventually.ts";

interface Document {
  readonly status: string;
  readonly next_attempt_at?: string;
  readonly streams: readonly { readonly path: string; readonly acked_offset: string }[];
}

async function subscribed(extras: Parameters<typeof webhook>[0] = {}): Promise<World> {
  const world = new World();
  world.subscriptions.put("s", webhook(extras), base);
  await world.commit();
  return world;
}

async function withWake(): Promise<World> {
  const world = await subscribed();
  world.streams.create(put("events/a"));
  world.streams.append(post("events/a", "x"));
  await world.commit();
  return world;
}

const shown = (world: World): Document => bodyOf<Document>(world.subscriptions.get("s"));
const acked = (world: World, path = "events/a"): string | undefined =>
  shown(world).streams.find((each) => each.path === path)?.acked_offset;

describe("a wake", () => {
  test("tells of a new stream that matches, once its data is durable, and of nothing else", async () => {
    const world = await subscribed();
    world.streams.create(put("other/a"));
    world.streams.append(post("other/a", "x"));
    world.streams.create(put("events/a"));
    await world.commit();
    expect(world.posts).toEqual([]);
    world.streams.append(post("events/a", "x"));
    expect(world.posts).toEqual([]);
    await world.commit();
    expect(world.last.json).toMatchObject({
      subscription_id: "s",
      generation: 1,
      callback_url: `${base}/v1/stream/__ds/subscriptions/s/callback`,
      streams: [
        {
          path: "events/a",
          link_type: "glob",
          acked_offset: "-1",
          tail_offset: formatOffset(1, 1),
          has_pending: true,
        },
      ],
    });
    expect(world.last.json.wake_id).toMatch(/^w_[0-9a-f]{24}$/);
  });

  test("P17 leaves only when it is durable itself", async () => {
    const world = await subscribed();
    world.streams.create(put("events/a"));
    world.streams.append(post("events/a", "x"));
    world.journal.commit();
    expect([world.journal.reserved > world.journal.durable, world.posts.length]).toEqual([true, 0]);
    world.journal.commit();
    expect(world.posts.length).toBe(0 + 1);
    const lost = await subscribed();
    lost.streams.create(put("events/a"));
    lost.streams.append(post("events/a", "x"));
    lost.journal.commit();
    lost.journal.fail();
    await lost.advance(100_000);
    expect(lost.posts).toEqual([]);
  });

  test("tells of what is durable when it leaves, not of what is on its way", async () => {
    const world = await withWake();
    await world.last.answer(200, { done: true });
    await world.commit();
    world.streams.append(post("events/a", "y"));
    world.journal.commit();
    const wakeAt = world.journal.reserved;
    world.streams.append(post("events/a", "z"));
    world.journal.commit(wakeAt);
    expect(world.posts).toHaveLength(2);
    expect(world.last.json.streams[0]?.tail_offset).toBe(formatOffset(2, 2));
  });

  test("does not tell of what was there before the subscription", async () => {
    const world = new World();
    world.streams.create(put("events/old"));
    world.streams.append(post("events/old", "abc"));
    // Not durable yet, and before it in the journal all the same.
    world.subscriptions.put("s", webhook(), base);
    await world.commit();
    expect(world.posts).toEqual([]);
    expect(acked(world, "events/old")).toBe(formatOffset(1, 3));
    world.streams.append(post("events/old", "d"));
    await world.commit();
    expect(world.last.json.streams[0]).toMatchObject({
      acked_offset: formatOffset(1, 3),
      tail_offset: formatOffset(2, 4),
    });
  });

  test("is one at a time; what comes meanwhile is the next one's", async () => {
    const world = await withWake();
    world.streams.append(post("events/a", "y"));
    world.streams.create(put("events/b"));
    world.streams.append(post("events/b", "z"));
    await world.commit();
    expect(world.posts).toHaveLength(1);
    await world.last.answer(200, { done: true });
    await world.commit();
    expect(world.posts).toHaveLength(2);
    expect(world.last.json.generation).toBe(2);
    expect(world.last.json.streams.map((each) => [each.path, each.acked_offset])).toEqual([
      ["events/a", formatOffset(1, 1)],
      ["events/b", "-1"],
    ]);
    await world.last.answer(200, { done: true });
    await world.commit();
    expect([world.posts.length, acked(world), acked(world, "events/b")]).toEqual([
      2,
      formatOffset(2, 2),
      formatOffset(1, 1),
    ]);
  });

  test("tells of so many streams and acknowledges no more than it told", async () => {
    const world = await subscribed();
    const count = limits.wakeStreamsMax + 5;
    for (let i = 0; i < count; i++) {
      world.streams.create(put(`events/${i}`, { body: Buffer.from("x") }));
    }
    await world.commit();
    expect(world.last.json.streams).toHaveLength(limits.wakeStreamsMax);
    await world.last.answer(200, { done: true });
    await world.commit();
    const told = world.last.json.streams.filter((each) => each.has_pending);
    expect([world.posts.length, told.length]).toEqual([2, 5]);
    expect(world.last.json.streams).toHaveLength(limits.wakeStreamsMax);
  });
});

describe("delivery", () => {
  test("a failed webhook is sent again with the same wake, later and later, never at once twice", async () => {
    const world = await withWake();
    const { wake_id, generation } = world.last.json;
    const waits: number[] = [];
    for (let failures = 1; failures <= 12; failures++) {
      await (failures % 2 === 0 ? world.last.answer(503) : world.last.fail("ECONNREFUSED"));
      expect(shown(world).status).toBe("failed");
      const due = Date.parse(shown(world).next_attempt_at ?? "");
      const wait = due - world.clock.now();
      waits.push(wait);
      expect(wait).toBeGreaterThanOrEqual(0);
      expect(wait).toBeLessThanOrEqual(Math.min(60_000, 1000 * 2 ** (failures - 1)));
      expect([world.posts.length, world.clock.armed]).toEqual([failures, 1]);
      await world.advance(wait);
      expect(world.posts).toHaveLength(failures + 1);
      expect(world.last.json).toMatchObject({ wake_id, generation });
    }
    // Full jitter: spread over the whole range, not around its end.
    expect(Math.max(...waits)).toBeGreaterThan(20_000);
    expect(Math.min(...waits.slice(5))).toBeLessThan(30_000);
    await world.last.answer(200, { done: true });
    await world.commit();
    expect([shown(world).status, world.clock.armed]).toEqual(["active", 0]);
    expect(JSON.stringify(world.warnings)).not.toContain("secret");
    expect(world.warnings[0]).toMatchObject({ subscription: "s", to: "127.0.0.1:9" });
  });

  test("Retry-After is waited for, up to the greatest backoff", async () => {
    const world = await withWake();
    await world.last.answer(429, { retryAfterMs: 30_000 });
    await world.advance(29_999);
    expect(world.posts).toHaveLength(1);
    await world.advance(1);
    expect(world.posts).toHaveLength(2);
    await world.last.answer(503, { retryAfterMs: 10 ** 9 });
    await world.advance(60_000);
    expect(world.posts).toHaveLength(3);
  });

  test("a receiver that does not answer is given up after its time", async () => {
    const world = await withWake();
    expect(world.clock.armed).toBe(1);
    await world.advance(limits.webhookMsMax);
    expect([world.last.signal.aborted, shown(world).status]).toEqual([true, "failed"]);
  });

  test("so many webhooks are in flight at once, one per subscription", async () => {
    const world = new World();
    const count = limits.webhooksInFlightMax + 3;
    for (let i = 0; i < count; i++) {
      world.subscriptions.put(`s${i}`, webhook(), base);
    }
    world.streams.create(put("events/a", { body: Buffer.from("x") }));
    await world.commit();
    expect(world.posts).toHaveLength(limits.webhooksInFlightMax);
    expect(world.subscriptions.stats()).toMatchObject({
      webhooksInFlight: limits.webhooksInFlightMax,
      webhooksWaiting: 3,
      wakesOpen: count,
    });
    await world.posts[0]?.answer(200);
    expect(world.posts).toHaveLength(limits.webhooksInFlightMax + 1);
  });

  test("the next wake waits until the answer to the last webhook is there", async () => {
    const world = await withWake();
    const { json } = world.last;
    world.streams.append(post("events/a", "y"));
    await world.commit();
    const report = reportOf(json, { acks: allOf(json), done: true });
    const answer = world.subscriptions.callback("s", report);
    expect(bodyOf(answer)).toEqual({ ok: true, next_wake: true });
    await world.commit();
    expect(world.posts).toHaveLength(1);
    await world.last.answer(200);
    expect(world.posts).toHaveLength(2);
    expect(world.last.json.generation).toBe(2);
  });
});

describe("a lease", () => {
  test("begins with the 2xx answer; without a report the wake is over and the next one fences it", async () => {
    const world = await withWake();
    const first = world.last.json;
    await world.last.answer(204);
    await world.advance(999);
    expect(world.posts).toHaveLength(1);
    await world.advance(1);
    expect(world.posts).toHaveLength(2);
    expect(world.last.json.generation).toBe(2);
    const late = world.subscriptions.callback("s", reportOf(first, { done: true }));
    expect(late).toMatchObject({ kind: "refused", code: "fenced", members: { generation: 2 } });
  });

  test("each callback lengthens it, and what it acknowledged stays acknowledged", async () => {
    const world = await withWake();
    const { json } = world.last;
    await world.last.answer(200);
    for (let i = 0; i < 5; i++) {
      await world.advance(900);
      expect(bodyOf(world.subscriptions.callback("s", reportOf(json)))).toEqual({
        ok: true,
        next_wake: false,
      });
    }
    world.subscriptions.callback("s", reportOf(json, { acks: allOf(json) }));
    await world.advance(1000);
    expect([world.posts.length, acked(world)]).toEqual([1, formatOffset(1, 1)]);
    const late = world.subscriptions.callback("s", reportOf(json));
    expect(outcomeOf(late)).toBe("fenced");
  });

  test("a receiver that called back before its answer was lost has the wake", async () => {
    const world = await withWake();
    const { json } = world.last;
    world.subscriptions.callback("s", reportOf(json));
    await world.last.fail("ECONNRESET");
    expect(shown(world).status).toBe("active");
    await world.advance(999);
    expect(world.posts).toHaveLength(1);
  });

  test("done ends it for good", async () => {
    const world = await withWake();
    const { json } = world.last;
    await world.last.answer(200);
    const report = reportOf(json, { acks: allOf(json), done: true });
    const answer = world.subscriptions.callback("s", report);
    expect(bodyOf(answer)).toEqual({ ok: true, next_wake: false });
    expect(world.hold(answer).state).toBe("waiting");
    await world.commit();
    expect(outcomeOf(world.subscriptions.callback("s", report))).toBe("fenced");
    expect(world.clock.armed).toBe(0);
  });
});

describe("reports", () => {
  test("a token of another subscription, of none, or of nobody is not valid", async () => {
    const world = await withWake();
    world.subscriptions.put("t", webhook({ glob: new Glob("none") }), base);
    const { json } = world.last;
    const report = reportOf(json, { done: true });
    for (const token of ["", "x", json.callback_token.replace(/^1/, "2"), "1.".padEnd(45, "A")]) {
      expect(outcomeOf(world.subscriptions.callback("s", { ...report, token })), token).toBe(
        "bad_token",
      );
    }
    expect(outcomeOf(world.subscriptions.callback("t", report))).toBe("bad_token");
    expect(outcomeOf(world.subscriptions.callback("u", report))).toBe("subscription_not_found");
    expect(outcomeOf(world.subscriptions.ack("s", report))).toBe("bad_subscription");
    expect(outcomeOf(world.subscriptions.callback("s", { ...report, wakeId: "w_x" }))).toBe(
      "fenced",
    );
    expect(outcomeOf(world.subscriptions.callback("s", { ...report, generation: 2 }))).toBe(
      "fenced",
    );
  });

  test("a subscription created again under its id does not know the old one's tokens", async () => {
    const world = await withWake();
    const { json } = world.last;
    world.subscriptions.remove("s");
    expect(world.last.signal.aborted).toBe(true);
    world.subscriptions.put("s", webhook(), base);
    expect(outcomeOf(world.subscriptions.callback("s", reportOf(json)))).toBe("bad_token");
  });

  test.each([
    ["-1", "the start"],
    ["now", "a word"],
    ["", "nothing"],
    ["zzz", "no offset"],
    [formatOffset(0, 0), "before the cursor"],
    [formatOffset(3, 3), "past the tail"],
    [formatOffset(2, 1), "within a record"],
  ])("an offset that is %s (%s) is refused, and nothing of the report is taken", async (offset) => {
    const world = await withWake();
    world.streams.append(post("events/a", "y"));
    world.streams.create(put("events/b", { body: Buffer.from("z") }));
    await world.commit();
    const { json } = world.last;
    const first = { path: "events/a", offset: formatOffset(1, 1) };
    world.subscriptions.callback("s", reportOf(json, { acks: [first] }));
    const acks = [
      { path: "events/b", offset: formatOffset(1, 1) },
      { path: "events/a", offset },
    ];
    const answer = world.subscriptions.callback("s", reportOf(json, { acks, done: true }));
    expect(outcomeOf(answer)).toBe("bad_ack_offset");
    expect([acked(world), acked(world, "events/b")]).toEqual([formatOffset(1, 1), "-1"]);
    const unknown = reportOf(json, { acks: [{ path: "events/none", offset: formatOffset(0, 0) }] });
    expect(outcomeOf(world.subscriptions.callback("s", unknown))).toBe("bad_ack_offset");
  });
});

describe("a journal that takes nothing", () => {
  test("holds a wake up and loses nothing", async () => {
    const world = await subscribed();
    world.streams.create(put("events/a"));
    world.streams.append(post("events/a", "x"));
    world.journal.refusal = new ForebayError("disk_full", "full");
    await world.commit();
    await world.advance(10_000);
    expect(world.posts).toEqual([]);
    world.journal.refusal = null;
    await world.advance(60_000);
    expect(world.posts).toHaveLength(1);
  });

  test("makes done in the answer come again, and a report an error with nothing changed", async () => {
    const world = await withWake();
    const { json } = world.last;
    world.journal.refusal = new ForebayError("disk_full", "full");
    expect(() => world.subscriptions.callback("s", reportOf(json, { done: true }))).toThrow("full");
    await world.last.answer(200, { done: true });
    expect([shown(world).status, acked(world)]).toEqual(["failed", "-1"]);
    world.journal.refusal = null;
    await world.advance(1000);
    expect(world.last.json.wake_id).toBe(json.wake_id);
    await world.last.answer(200, { done: true });
    expect(acked(world)).toBe(formatOffset(1, 1));
  });

  test("lets a lease run out later", async () => {
    const world = await withWake();
    await world.last.answer(200);
    world.journal.refusal = new ForebayError("disk_full", "full");
    await world.advance(5000);
    expect(world.posts).toHaveLength(1);
    world.journal.refusal = null;
    await world.advance(60_000);
    expect(world.posts).toHaveLength(2);
    expect(world.last.json.generation).toBe(2);
  });
});
