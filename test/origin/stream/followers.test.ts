import { describe, expect, test } from "vitest";
import type { Follower } from "../../../origin/stream/mod.ts";
import {
  bench,
  bytes,
  isRefused,
  outcome,
  post,
  put,
  type ResidentStreams,
  text,
} from "./harness.ts";

/** Reads on at every call, like a live reader, and notes what it saw. */
class Reader implements Follower {
  readonly seen: string[] = [];
  #offset = "now";
  #id: number | undefined;
  readonly #streams: ResidentStreams;
  readonly #path: string;

  constructor(streams: ResidentStreams, path: string) {
    this.#streams = streams;
    this.#path = path;
    this.onAdvance();
    this.seen.length = 0;
    streams.follow(path, this);
  }

  onAdvance(): void {
    const how = { maxBytes: 1000, touch: true };
    const id = this.#id;
    const batch = this.#streams.read(
      this.#path,
      this.#offset,
      id === undefined ? how : { ...how, id },
    );
    if (isRefused(batch)) {
      this.seen.push(outcome(batch));
      return;
    }
    this.#id = batch.id;
    this.#offset = batch.next;
    this.seen.push(batch.records.map(text).join("+") + (batch.closed ? " closed" : ""));
  }
}

describe("following a stream", () => {
  test("is told once per durable advance, and only of its own stream", () => {
    const { streams, journal } = bench();
    streams.create(put("s"));
    streams.create(put("other"));
    journal.commit();
    const reader = new Reader(streams, "s");
    streams.append(post("s", "a"));
    streams.append(post("other", "x"));
    streams.append(post("s", "b"));
    expect(reader.seen).toEqual([]);
    journal.commit();
    expect(reader.seen).toEqual(["a+b"]);
    streams.append(post("other", "y"));
    journal.commit();
    expect(reader.seen).toEqual(["a+b"]);
  });

  test("P2 append-and-close comes as the data, with the end", () => {
    const { streams, journal } = bench();
    streams.create(put("s"));
    journal.commit();
    const reader = new Reader(streams, "s");
    streams.append(post("s", "last", { close: true }));
    journal.commit();
    expect(reader.seen).toEqual(["last closed"]);
  });

  test("a close and a delete are told when durable", () => {
    const { streams, journal } = bench();
    streams.create(put("a"));
    streams.create(put("b"));
    journal.commit();
    const [a, b] = [new Reader(streams, "a"), new Reader(streams, "b")];
    streams.append(post("a", "", { close: true }));
    streams.remove("b");
    expect([a.seen, b.seen]).toEqual([[], []]);
    journal.commit();
    expect([a.seen, b.seen]).toEqual([[" closed"], ["404 stream_not_found"]]);
  });

  test("a follower of a life that ended is not given the next one", () => {
    const { streams, journal } = bench();
    streams.create(put("s", { body: bytes("old") }));
    journal.commit();
    const reader = new Reader(streams, "s");
    streams.remove("s");
    streams.create(put("s", { body: bytes("new") }));
    journal.commit();
    expect(reader.seen).toEqual(["410 stream_gone"]);
    streams.append(post("s", "more"));
    journal.commit();
    expect(reader.seen).toEqual(["410 stream_gone"]);
  });

  test("who left is not called, also when it leaves while others are called", () => {
    const { streams, journal } = bench();
    streams.create(put("s"));
    journal.commit();
    const calls: string[] = [];
    const second: Follower = { onAdvance: () => void calls.push("second") };
    const first: Follower = {
      onAdvance: () => {
        calls.push("first");
        streams.unfollow("s", second);
        streams.unfollow("s", first);
        streams.follow("s", first);
      },
    };
    streams.follow("s", first);
    streams.follow("s", second);
    streams.append(post("s", "x"));
    journal.commit();
    expect(calls).toEqual(["first"]);
    expect(streams.stats().followers).toBe(1);
    streams.unfollow("s", first);
    expect(streams.stats().followers).toBe(0);
  });

  test("following what is not there would wait for ever, so it is the caller's mistake", () => {
    const { streams } = bench();
    const follower = { onAdvance: () => undefined };
    expect(() => streams.follow("none", follower)).toThrow("has just read it");
    expect(streams.stats().followers).toBe(0);
  });
});

describe("the deadline timer", () => {
  test("is armed only while a followed stream can expire, and is one", () => {
    const { streams, journal, clock } = bench();
    const follower = (): Follower => ({ onAdvance: () => undefined });
    const [one, two, three] = [follower(), follower(), follower()];
    streams.create(put("mortal", { ttlSeconds: 10 }));
    streams.create(put("sooner", { ttlSeconds: 5 }));
    streams.create(put("immortal"));
    journal.commit();
    expect(clock.armed).toBe(0);
    streams.follow("immortal", one);
    expect(clock.armed).toBe(0);
    streams.follow("mortal", two);
    streams.follow("sooner", three);
    expect(clock.armed).toBe(1);
    streams.unfollow("mortal", two);
    expect(clock.armed).toBe(1);
    streams.unfollow("sooner", three);
    expect(clock.armed).toBe(0);
  });

  test("followers are told of an expiry when it is durable", () => {
    const { streams, journal, clock } = bench();
    const ms = clock.now() + 3000;
    streams.create(put("s", { expiresAt: { text: "soon", ms } }));
    journal.commit();
    const reader = new Reader(streams, "s");
    clock.advance(2999);
    expect(journal.reserved).toBe(1);
    clock.advance(1);
    expect([journal.reserved, reader.seen]).toEqual([2, []]);
    journal.commit();
    expect(reader.seen).toEqual(["404 stream_not_found"]);
    expect(clock.armed).toBe(0);
  });

  test("a deadline that was moved is waited for again", () => {
    const { streams, journal, clock } = bench();
    streams.create(put("s", { ttlSeconds: 2 }));
    journal.commit();
    const reader = new Reader(streams, "s");
    clock.advance(1500);
    streams.append(post("s", "x"));
    journal.commit();
    clock.advance(1500);
    expect(reader.seen).toEqual(["x"]);
    expect(clock.armed).toBe(1);
    clock.advance(500);
    journal.commit();
    expect(reader.seen).toEqual(["x", "404 stream_not_found"]);
  });

  test("a journal that takes nothing leaves the expiry to the next request", () => {
    const { streams, journal, clock } = bench();
    streams.create(put("s", { ttlSeconds: 2 }));
    journal.commit();
    const reader = new Reader(streams, "s");
    journal.fail();
    clock.advance(2000);
    expect([reader.seen, clock.armed]).toEqual([[], 0]);
    streams.close();
  });
});
