import { expect, test } from "vitest";
import { Glob } from "../../../origin/subscription/mod.ts";
import { formatOffset } from "../../../shared/protocol/mod.ts";
import { contents, post, put } from "../stream/harness.ts";
import { allOf, base, bodyOf, outcomeOf, pull, reportOf, type WakeJson, World } from "./world.ts";

const jsonStream = { contentType: "application/json" };

async function subscribed(wakeStream = true): Promise<World> {
  const world = new World();
  if (wakeStream) {
    world.streams.create(put("wake/pool", jsonStream));
  }
  world.subscriptions.put("s", pull(), base);
  world.streams.create(put("events/a"));
  world.streams.append(post("events/a", "x"));
  await world.commit();
  return world;
}

const events = (world: World): Record<string, unknown>[] =>
  contents(world.streams, "wake/pool").map((event) => JSON.parse(event));

test("a wake is one event in the wake stream, whatever comes before it is claimed", async () => {
  const world = await subscribed();
  world.streams.append(post("events/a", "y"));
  await world.advance(100_000);
  expect(events(world)).toEqual([
    {
      type: "wake",
      subscription_id: "s",
      stream: "events/a",
      generation: 1,
      ts: 1_700_000_000_000,
    },
  ]);
  expect(world.clock.armed).toBe(0);
});

test("P17 one worker claims, the others hear who holds it; the answer waits for the claim to be durable", async () => {
  const world = await subscribed();
  const answer = world.claim();
  expect(world.hold(answer).state).toBe("waiting");
  const busy = world.claim("s", "w2");
  expect(world.hold(busy).state).toBe("waiting");
  expect(busy).toMatchObject({
    code: "already_claimed",
    members: { current_holder: "w1", generation: 1 },
  });
  await world.commit();
  expect(bodyOf<WakeJson>(answer)).toMatchObject({
    generation: 1,
    lease_ttl_ms: 1000,
    streams: [{ path: "events/a", tail_offset: formatOffset(1, 1), has_pending: true }],
  });
  expect(world.hold(answer).state).toBe("sent");
});

test("an ack moves the cursor, done frees the subscription, and without news there is nothing to claim", async () => {
  const world = await subscribed();
  const wake = bodyOf<WakeJson>(world.claim());
  const done = world.subscriptions.ack("s", reportOf(wake, { acks: allOf(wake), done: true }));
  expect(bodyOf(done)).toEqual({ ok: true, next_wake: false });
  expect(outcomeOf(world.claim())).toBe("no_pending_work");
  world.streams.append(post("events/a", "y"));
  await world.commit();
  expect(events(world).map(({ generation }) => generation)).toEqual([1, 2]);
  const next = bodyOf<WakeJson>(world.claim("s", "w2"));
  expect([next.generation, next.streams[0]?.acked_offset]).toEqual([2, formatOffset(1, 1)]);
  expect(outcomeOf(world.subscriptions.ack("s", reportOf(wake)))).toBe("fenced");
});

test("what is released is offered anew at once, under the next generation", async () => {
  const world = await subscribed();
  const wake = bodyOf<WakeJson>(world.claim());
  expect(outcomeOf(world.subscriptions.release("s", reportOf(wake)))).toBe("204");
  await world.commit();
  expect(events(world).map(({ generation }) => generation)).toEqual([1, 2]);
  expect(outcomeOf(world.subscriptions.release("s", reportOf(wake)))).toBe("fenced");
  expect(bodyOf<WakeJson>(world.claim("s", "w2")).generation).toBe(2);
});

test("a lease that runs out fences its worker; heartbeats keep it", async () => {
  const world = await subscribed();
  const wake = bodyOf<WakeJson>(world.claim());
  for (let i = 0; i < 3; i++) {
    await world.advance(999);
    expect(outcomeOf(world.subscriptions.ack("s", reportOf(wake)))).toBe("200");
  }
  await world.advance(1000);
  expect(outcomeOf(world.subscriptions.ack("s", reportOf(wake)))).toBe("fenced");
  expect(events(world).map(({ generation }) => generation)).toEqual([1, 2]);
});

test("a claim between an append's commit and its wake's opens the wake itself", async () => {
  const world = await subscribed();
  const first = bodyOf<WakeJson>(world.claim());
  world.streams.append(post("events/a", "y"));
  await world.commit();
  const report = reportOf(first, { acks: allOf(first), done: true });
  expect(bodyOf(world.subscriptions.ack("s", report))).toEqual({ ok: true, next_wake: true });
  // The wake is not durable, its event is not written: a worker that asks gets it all the same, and no event follows.
  expect(bodyOf<WakeJson>(world.claim("s", "w2")).generation).toBe(2);
  await world.commit();
  expect(events(world)).toHaveLength(1);
});

test("a wake stream that is missing or takes no JSON is tried again", async () => {
  const world = await subscribed(false);
  await world.advance(3000);
  world.streams.create(put("wake/pool", { contentType: "text/plain" }));
  await world.advance(60_000);
  expect(contents(world.streams, "wake/pool")).toEqual([]);
  world.streams.remove("wake/pool");
  world.streams.create(put("wake/pool", jsonStream));
  await world.advance(60_000);
  expect(events(world)).toHaveLength(1);
  expect(world.clock.armed).toBe(0);
});

test("claims, acks and releases are for pull-wake, and a subscription is never woken by its own wakes", async () => {
  const world = new World();
  world.streams.create(put("wake/pool", jsonStream));
  world.subscriptions.put("all", pull({ glob: new Glob("**") }), base);
  world.streams.create(put("a", { body: Buffer.from("x") }));
  await world.commit();
  const wake = bodyOf<WakeJson>(world.claim("all"));
  expect(wake.streams.map(({ path }) => path)).toEqual(["a"]);
  expect(outcomeOf(world.subscriptions.callback("all", reportOf(wake)))).toBe("bad_subscription");
  expect(outcomeOf(world.subscriptions.addStreams("all", ["wake/pool"]))).toBe("bad_subscription");
  expect(outcomeOf(world.claim("nobody"))).toBe("subscription_not_found");
});
