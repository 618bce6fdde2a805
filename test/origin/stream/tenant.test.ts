import { expect, test } from "vitest";
import type { StreamLife, Tenant } from "../../../origin/stream/mod.ts";
import { bench, bytes, post, put, text } from "./harness.ts";
import { createStreams } from "../../../origin/stream/mod.ts";
import { ResidentRecords } from "../store/harness.ts";

/** Notes what it hears, and in which order. */
class ListeningTenant implements Tenant {
  readonly heard: string[] = [];

  apply(code: number, body: Uint8Array, lsn: number): void {
    this.heard.push(`${lsn}: ${code} ${text(body)}`);
  }

  *state(): Generator<never> {}

  onDurable({ path, durableRecord }: StreamLife, created: boolean): void {
    this.heard.push(`${path} ${durableRecord}${created ? " created" : ""}`);
  }

  onAdvanced(): void {
    this.heard.push("advanced");
  }
}

test("J25 a tenant's changes go through the journal in order with the streams', and come back at replay", () => {
  const { streams, journal, clock } = bench();
  const live = new ListeningTenant();
  streams.adopt(live);
  streams.create(put("a"));
  streams.commitTenant([
    { code: 32, body: bytes("one") },
    { code: 47, body: bytes("") },
  ]);
  streams.append(post("a", "x"));
  expect(live.heard).toEqual(["2: 32 one", "2: 47 "]);
  journal.commit();
  expect(live.heard.slice(2)).toEqual(["a 0 created", "a 1", "advanced"]);

  const again = createStreams({ clock, store: new ResidentRecords(1 << 20) });
  const replayed = new ListeningTenant();
  again.adopt(replayed);
  journal.entries.forEach((entry, i) => again.replay((i + 1) as never, entry));
  expect(replayed.heard.filter((line) => line !== "advanced")).toEqual([
    "a 0 created",
    "2: 32 one",
    "2: 47 ",
    "a 1",
  ]);
});

test("a tenant sees each living stream with what of it is durable", () => {
  const { streams, journal } = bench();
  streams.create(put("a"));
  streams.create(put("b"));
  journal.commit();
  streams.append(post("a", "xyz"));
  expect(streams.life("a")).toMatchObject({ record: 1, byte: 3, durableRecord: 0, durableByte: 0 });
  expect(streams.life("nowhere")).toBeUndefined();
  expect([...streams.lives()].map(({ path }) => path)).toEqual(["a", "b"]);
});
