import { expect, test } from "vitest";
import { startGateway } from "./gatewayUnderTest.ts";
import { SseClient } from "./sseClient.ts";
import { eventually } from "./eventually.ts";

const text = { "content-type": "text/plain" };

test("closing answers what waits, ends SSE, lets a commit finish and refuses what is new", async () => {
  const gateway = await startGateway({ longPollMs: 20_000 });
  const stream = `${gateway.url}/v1/stream/s`;
  await fetch(stream, { method: "PUT", headers: text });
  const reader = await SseClient.open(`${stream}?offset=-1&live=sse`);
  const poll = fetch(`${stream}?offset=now&live=long-poll`);
  await eventually(async () =>
    (await (await fetch(`${gateway.url}/metrics`)).text()).includes("followers 2\n"),
  ).toBe(true);
  gateway.journal.held = true;
  const append = fetch(stream, { method: "POST", headers: text, body: "x" });
  await eventually(() => gateway.journal.reserved).toBe(2);
  const started = performance.now();
  const closed = gateway.close(5000);
  const answer = await poll;
  expect([
    answer.status,
    answer.headers.get("retry-after"),
    answer.headers.get("connection"),
  ]).toEqual([503, "1", "close"]);
  await eventually(() => reader.ended).toBe(true);
  await expect(fetch(`${gateway.url}/livez`)).rejects.toThrow("fetch failed");
  gateway.journal.commit();
  expect((await append).status).toBe(204);
  await closed;
  expect(performance.now() - started).toBeLessThan(4000);
});

test("what never ends is cut at the deadline", async () => {
  const gateway = await startGateway();
  const stream = `${gateway.url}/v1/stream/s`;
  await fetch(stream, { method: "PUT", headers: text });
  gateway.journal.held = true;
  const append = fetch(stream, { method: "POST", headers: text, body: "x" });
  await eventually(() => gateway.journal.reserved).toBe(2);
  const [outcome] = await Promise.allSettled([append, gateway.close(200)]);
  expect(outcome.status).toBe("rejected");
});
