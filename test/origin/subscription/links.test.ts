import { describe, expect, test } from "vitest";
import { limits } from "../../../shared/limits.ts";
import { formatOffset } from "../../../shared/protocol/mod.ts";
import { ForebayError } from "../../../shared/errors/mod.ts";
import { Glob } from "../../../origin/subscription/mod.ts";
import { errorOf } from "../../shared/thrown.ts";
import { post, put } from "../stream/harness.ts";
import { base, bodyOf, outcomeOf, pull, webhook, World } from "./world.ts";
import "../gateway/eventually.ts";

interface Document {
  readonly unlinked_streams?: number;
  readonly streams: readonly {
    readonly path: string;
    readonly link_type: string;
    readonly acked_offset: string;
  }[];
}

const linked = (world: World, id = "s"): string[] =>
  bodyOf<Document>(world.subscriptions.get(id)).streams.map(
    ({ path, link_type, acked_offset }) => `${path} ${link_type} ${acked_offset}`,
  );

describe("PUT", () => {
  test("makes it once, confirms the same configuration, and refuses another one", () => {
    const world = new World();
    const definition = webhook({ streams: ["a", "b"], description: "d" });
    expect(outcomeOf(world.subscriptions.put("s", definition, base))).toBe("201");
    const again = { ...definition, streams: ["b", "a", "a"] };
    expect(outcomeOf(world.subscriptions.put("s", again, "http://other.test"))).toBe("200");
    for (const changed of [
      { leaseMs: 2000 },
      { description: null },
      { streams: ["a"] },
      { glob: new Glob("events/**") },
      { glob: null },
      { target: { kind: "webhook" as const, url: "http://127.0.0.1:9/other" } },
      { target: { kind: "pull-wake" as const, stream: "wake" } },
    ]) {
      const answer = world.subscriptions.put("s", { ...definition, ...changed }, base);
      expect(outcomeOf(answer), JSON.stringify(changed)).toBe("subscription_exists");
    }
  });

  test("P17 its answer, a conflict, a GET and a 404 after the end wait for what they were judged by", async () => {
    const world = new World();
    expect(world.subscriptions.jwks().lsn).toBe(0);
    const held = [
      world.subscriptions.put("s", webhook(), base),
      world.subscriptions.put("s", pull(), base),
      world.subscriptions.get("s"),
    ].map((answer) => world.hold(answer));
    expect(held.map(({ state }) => state)).toEqual(["waiting", "waiting", "waiting"]);
    expect(world.subscriptions.jwks()).toMatchObject({ keys: [{ kty: "OKP" }], lsn: 1 });
    await world.commit();
    expect(held.map(({ state }) => state)).toEqual(["sent", "sent", "sent"]);
    world.subscriptions.remove("s");
    const gone = world.subscriptions.get("s");
    expect([outcomeOf(gone), world.hold(gone).state]).toEqual([
      "subscription_not_found",
      "waiting",
    ]);
    expect(outcomeOf(world.subscriptions.remove("s"))).toBe("204");
  });

  test("a webhook that may not be called is refused, and a journal that takes nothing changes nothing", () => {
    const world = new World();
    const target = { kind: "webhook" as const, url: "http://10.0.0.1/hook" };
    const error = errorOf(() => world.subscriptions.put("s", webhook({ target }), base));
    expect(error.code).toBe("webhook_rejected");
    world.journal.refusal = new ForebayError("disk_full", "full");
    expect(() => world.subscriptions.put("s", webhook(), base)).toThrow("full");
    expect(outcomeOf(world.subscriptions.get("s"))).toBe("subscription_not_found");
    expect(world.subscriptions.jwks().keys).toEqual([]);
  });

  test("there are so many subscriptions and no more", () => {
    const world = new World();
    for (let i = 0; i < limits.subscriptionsMax; i++) {
      world.subscriptions.put(`s${i}`, webhook(), base);
    }
    expect(outcomeOf(world.subscriptions.put("one more", webhook(), base))).toBe(
      "too_many_subscriptions",
    );
    expect(outcomeOf(world.subscriptions.put("s0", webhook(), base))).toBe("200");
    world.subscriptions.remove("s0");
    expect(outcomeOf(world.subscriptions.put("one more", webhook(), base))).toBe("201");
  });
});

describe("links", () => {
  test("named streams are added and removed; one that is matched too stays matched", async () => {
    const world = new World();
    world.streams.create(put("events/a", { body: Buffer.from("xy") }));
    world.subscriptions.put("s", webhook({ streams: ["named"] }), base);
    expect(linked(world)).toEqual(["named explicit -1", `events/a glob ${formatOffset(1, 2)}`]);
    expect(outcomeOf(world.subscriptions.addStreams("s", ["events/a", "b", "b"]))).toBe("204");
    expect(linked(world)).toEqual([
      "named explicit -1",
      `events/a explicit ${formatOffset(1, 2)}`,
      "b explicit -1",
    ]);
    for (const path of ["events/a", "b", "never there"]) {
      expect(outcomeOf(world.subscriptions.removeStream("s", path))).toBe("204");
    }
    expect(linked(world)).toEqual(["named explicit -1", `events/a glob ${formatOffset(1, 2)}`]);
    world.subscriptions.removeStream("s", "events/a");
    expect(linked(world)).toHaveLength(2);
    expect(outcomeOf(world.subscriptions.addStreams("none", ["a"]))).toBe("subscription_not_found");
    expect(outcomeOf(world.subscriptions.removeStream("none", "a"))).toBe("subscription_not_found");
    await world.commit();
    expect(world.posts).toEqual([]);
  });

  test("P6 a cursor is of one life: a matched stream that ends is forgotten, a named one begins anew", async () => {
    const world = new World();
    for (const path of ["events/a", "named"]) {
      world.streams.create(put(path, { body: Buffer.from("old") }));
    }
    world.subscriptions.put("s", webhook({ streams: ["named"] }), base);
    world.streams.remove("events/a");
    world.streams.remove("named");
    await world.commit();
    expect(linked(world)).toEqual(["named explicit -1"]);
    for (const path of ["events/a", "named"]) {
      world.streams.create(put(path, { body: Buffer.from("new") }));
    }
    await world.commit();
    expect(world.posts).toHaveLength(1);
    expect(world.last.json.streams.map((each) => [each.path, each.acked_offset])).toEqual([
      ["named", "-1"],
      ["events/a", "-1"],
    ]);
    // Gone and back within one commit.
    await world.last.answer(200, { done: true });
    world.streams.remove("named");
    world.streams.create(put("named", { body: Buffer.from("newest") }));
    await world.commit();
    expect(world.last.json.streams.find(({ path }) => path === "named")).toMatchObject({
      acked_offset: "-1",
      has_pending: true,
    });
  });

  test("done acknowledges nothing of a stream that was made again meanwhile", async () => {
    const world = new World();
    world.subscriptions.put("s", webhook(), base);
    world.streams.create(put("events/a", { body: Buffer.from("old") }));
    await world.commit();
    world.streams.remove("events/a");
    world.streams.create(put("events/a", { body: Buffer.from("new") }));
    await world.commit();
    await world.last.answer(200, { done: true });
    await world.commit();
    expect(world.posts).toHaveLength(2);
    expect(world.last.json.streams[0]).toMatchObject({ acked_offset: "-1", has_pending: true });
  });

  test("Forebay's own streams match no pattern", async () => {
    const world = new World();
    world.subscriptions.put("s", webhook({ glob: new Glob("**") }), base);
    const record = Buffer.from("1");
    world.streams.ingest({
      path: "_forebay/x",
      contentType: "application/json",
      records: [record],
      producer: null,
      create: true,
    });
    world.streams.create(put("a"));
    await world.commit();
    expect(linked(world)).toEqual(["a glob -1"]);
  });

  test("a subscription follows so many streams: refused when asked for more, counted when more come", async () => {
    const world = new World();
    const paths = Array.from({ length: limits.subscriptionLinksMax }, (_, i) => `n/${i}`);
    const wide = webhook({ streams: paths });
    expect(
      outcomeOf(world.subscriptions.put("wider", { ...wide, streams: [...paths, "x"] }, base)),
    ).toBe("too_many_links");
    expect(outcomeOf(world.subscriptions.put("s", wide, base))).toBe("201");
    expect(outcomeOf(world.subscriptions.addStreams("s", ["x"]))).toBe("too_many_links");
    world.streams.create(put("events/a", { body: Buffer.from("x") }));
    world.streams.create(put("events/b", { body: Buffer.from("x") }));
    await world.commit();
    expect(bodyOf<Document>(world.subscriptions.get("s")).unlinked_streams).toBe(2);
    expect(world.subscriptions.stats()).toMatchObject({
      streamsUnlinked: 2,
      links: limits.subscriptionLinksMax,
    });
    // A place is free: what was left out is found by the next start.
    world.subscriptions.removeStream("s", "n/0");
    world.subscriptions.removeStream("s", "n/1");
    await world.commit();
    const again = world.crash();
    await again.commit();
    expect(again.posts).toHaveLength(1);
    expect(bodyOf<Document>(again.subscriptions.get("s")).unlinked_streams).toBeUndefined();
  });

  test("without subscriptions nothing is kept of the streams, and nothing is armed", async () => {
    const world = new World();
    world.streams.create(put("events/a", { body: Buffer.from("x") }));
    world.streams.append(post("events/a", "y"));
    await world.commit();
    expect([world.journal.entries.length, world.clock.armed]).toEqual([2, 0]);
    expect(world.subscriptions.stats().links).toBe(0);
  });
});
