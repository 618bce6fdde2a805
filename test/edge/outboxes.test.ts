import { beforeEach, expect, test } from "vitest";
import { listDurableObjectIds } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { EdgeUnderTest, json } from "./edgeUnderTest.ts";
import { StandInOrigin } from "./standInOrigin.ts";

/** `/v1/outboxes`: what operators see of the outboxes and do to them. */
const origin = new StandInOrigin();
let edge: EdgeUnderTest;
beforeEach(() => {
  origin.install();
  edge = new EdgeUnderTest();
});

test("the list names the region and the number, and touches no outbox", async () => {
  const before = await listDurableObjectIds(env.OUTBOX);
  expect(await (await edge.fetch("/v1/outboxes")).json()).toEqual({
    region: "test",
    partitions: 4,
  });
  expect(await listDurableObjectIds(env.OUTBOX)).toEqual(before);
});

test("F14 progress as Prometheus reads it: one line a sample, each metric with help and type", async () => {
  expect((await edge.post("/v1/ingest/m", "[1,2]", json)).status).toBe(202);
  for (let n = 0; n < 4; n++) {
    const response = await edge.fetch(`/v1/outboxes/${n}/metrics`);
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4");
    const lines = (await response.text()).trimEnd().split("\n");
    for (const line of lines) {
      expect(line).toMatch(
        /^(# HELP forebay_outbox_\w+ \S.*|# TYPE forebay_outbox_\w+ (gauge|counter)|forebay_outbox_\w+\{[^{}]*buffer="test:\d"[^{}]*\} [\d.]+)$/,
      );
    }
    const names = ["oldest_unacked_seconds", "bytes", "frames_sent_total", "strikes", "healthy"];
    for (const name of names) {
      expect(
        lines.some((line) => line.startsWith(`forebay_outbox_${name}{`)),
        name,
      ).toBe(true);
    }
  }
});

test.each([
  ["GET", "/v1/outboxes/0/nothing", 404, "not_found"],
  ["GET", "/v1/outboxes/0/dead/x", 404, "not_found"],
  ["GET", "/v1/outboxes/0/dead/7", 404, "not_found"],
  ["GET", "/v1/outboxes/0/dead?after=x", 400, "bad_query"],
  ["GET", "/v1/outboxes/9/metrics", 404, "not_found"],
  ["POST", "/v1/outboxes/0", 404, "not_found"],
  ["POST", "/v1/outboxes/0/dead/7/replay", 404, "not_found"],
  ["DELETE", "/v1/outboxes/0", 405, "method_not_allowed"],
])("%s %s is refused: %i %s", async (method, path, status, code) => {
  const response = await edge.fetch(path, { method });
  expect([response.status, await response.json()]).toMatchObject([status, { code }]);
});

test("without the key nothing of it is told or done", async () => {
  const keyed = new EdgeUnderTest({ FOREBAY_KEY: "right" });
  const calls = [
    ["GET", "/v1/outboxes"],
    ["GET", "/v1/outboxes/0/metrics"],
    ["GET", "/v1/outboxes/0/dead"],
    ["POST", "/v1/outboxes/0/drain"],
    ["POST", "/v1/outboxes/0/dead/1/replay"],
  ] as const;
  for (const [method, path] of calls) {
    expect((await keyed.fetch(path, { method })).status, path).toBe(401);
  }
});
