import { afterAll, beforeAll, expect, test } from "vitest";
import { startGateway, type GatewayUnderTest } from "./gatewayUnderTest.ts";
import { SseClient } from "./sseClient.ts";
import { eventually } from "./eventually.ts";

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.close());

const text = { "content-type": "text/plain" };
const json = { "content-type": "application/json" };

function send(
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body: string | Uint8Array<ArrayBuffer> | null = null,
): Promise<Response> {
  return fetch(`${gateway.url}/v1/stream/${path}`, { method, headers, body });
}

const follow = (path: string, offset = "-1"): Promise<SseClient> =>
  SseClient.open(`${gateway.url}/v1/stream/${path}?offset=${offset}&live=sse`);

const gauge = async (name: string): Promise<number> => {
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  return Number(new RegExp(`^forebay_${name} (\\d+)`, "m").exec(metrics)?.[1]);
};

test("P2 the last record comes before streamClosed, then the answer ends", async () => {
  await send("PUT", "close", text);
  const reader = await follow("close");
  await eventually(() => reader.events.length).toBe(1);
  await send("POST", "close", { ...text, "stream-closed": "true" }, "last");
  await eventually(() => reader.ended).toBe(true);
  expect(reader.events.slice(1).map(({ event }) => event)).toEqual(["data", "control"]);
  expect(reader.data).toEqual(["last"]);
  expect(reader.controls.at(-1)).toEqual({
    streamNextOffset: "0000000000000001_0000000000000004",
    streamClosed: true,
  });
});

test("P2 a close without data is a control event alone", async () => {
  await send("PUT", "bare", text);
  const reader = await follow("bare", "now");
  await eventually(() => reader.events.length).toBe(1);
  await send("POST", "bare", { "stream-closed": "true" });
  await eventually(() => reader.ended).toBe(true);
  expect([reader.data, reader.controls.at(-1)?.streamClosed]).toEqual([[], true]);
});

test("P3 many messages of one read are one data event and one control event", async () => {
  await send("PUT", "batch", json, "[1,2]");
  await send("POST", "batch", json, "[3]");
  const reader = await follow("batch");
  await eventually(() => reader.events.length).toBe(2);
  expect(reader.data).toEqual(["[1,2,3]"]);
  await send("POST", "batch", json, "[4,5]");
  await eventually(() => reader.events.length).toBe(4);
  expect(reader.data).toEqual(["[1,2,3]", "[4,5]"]);
  expect(reader.controls.map(({ upToDate }) => upToDate)).toEqual([true, true]);
  reader.close();
});

test("promise 4: a live reader sees nothing before it is durable", async () => {
  await send("PUT", "held", text);
  const reader = await follow("held");
  await eventually(() => reader.events.length).toBe(1);
  gateway.journal.held = true;
  const append = send("POST", "held", text, "x");
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(reader.data).toEqual([]);
  gateway.journal.held = false;
  gateway.journal.commit();
  await append;
  await eventually(() => reader.data).toEqual(["x"]);
  reader.close();
});

test("readers that came at different times all get every record once, in order", async () => {
  await send("PUT", "many", json);
  const readers: SseClient[] = [];
  for (let i = 0; i < 60; i++) {
    if (i % 3 === 0) {
      readers.push(await follow("many"));
    }
    await send("POST", "many", json, `[${i}]`);
  }
  const all = Array.from({ length: 60 }, (_, i) => i);
  for (const reader of readers) {
    await eventually(() => reader.data.flatMap((data) => JSON.parse(data) as number[])).toEqual(
      all,
    );
    const offsets = reader.controls.map(({ streamNextOffset }) => streamNextOffset);
    expect(offsets).toEqual([...new Set(offsets)].sort());
    reader.close();
  }
  await eventually(() => gauge("followers")).toBe(0);
  await eventually(() => gauge("requests_waiting")).toBe(0);
});

test("readers at the tail are one follower of the stream", async () => {
  await send("PUT", "shared", text);
  const readers = await Promise.all(Array.from({ length: 20 }, () => follow("shared")));
  await eventually(() => readers.every((reader) => reader.events.length === 1)).toBe(true);
  expect(await gauge("followers")).toBe(1);
  readers.forEach((reader) => reader.close());
  await eventually(() => gauge("followers")).toBe(0);
});

test("no payload can forge an event, wherever its line ends fall", async () => {
  await send("PUT", "forge", text);
  const reader = await follow("forge");
  const parts = ["a\r", "\nb\n\nevent: control\ndata:{}\n\n", "\r\r", "c"];
  for (const part of parts) {
    await send("POST", "forge", text, part);
  }
  await eventually(() => reader.data.join("")).toContain("c");
  expect(reader.events.every(({ event }) => event === "data" || event === "control")).toBe(true);
  expect(reader.controls.every((control) => control.streamNextOffset !== undefined)).toBe(true);
  // A reader from the start gets the records as one payload: CR LF across two records is one line end.
  const later = await follow("forge");
  await eventually(() => later.data).toEqual(["a\nb\n\nevent: control\ndata:{}\n\n\n\nc"]);
  reader.close();
  later.close();
});

test("text passes as its bytes, binary as base64 with a header that says so", async () => {
  await send("PUT", "utf8", { "content-type": "text/plain; charset=utf-8" }, "häß 水 😀");
  const words = await follow("utf8");
  await eventually(() => words.data).toEqual(["häß 水 😀"]);
  expect(words.answer.headers["stream-sse-data-encoding"]).toBeUndefined();
  words.close();
  const bytes = new Uint8Array([0, 10, 13, 255]);
  await send("PUT", "bin", { "content-type": "application/x-thing" }, bytes);
  await send("POST", "bin", { "content-type": "application/x-thing" }, bytes);
  const binary = await follow("bin");
  await eventually(() => binary.data).toEqual([
    Buffer.from([...bytes, ...bytes]).toString("base64"),
  ]);
  expect(binary.answer.headers["stream-sse-data-encoding"]).toBe("base64");
  binary.close();
});

test("a cursor moves past the client's and never goes back", async () => {
  await send("PUT", "cursor", text, "x");
  const first = await follow("cursor");
  await eventually(() => first.controls.length).toBe(1);
  const sent = Number(first.controls[0]?.streamCursor) + 1000;
  const ahead = await SseClient.open(
    `${gateway.url}/v1/stream/cursor?offset=-1&live=sse&cursor=${sent}`,
  );
  await eventually(() => ahead.controls.length).toBe(1);
  await send("POST", "cursor", text, "y");
  await eventually(() => [first.controls.length, ahead.controls.length]).toEqual([2, 2]);
  const cursors = ahead.controls.map(({ streamCursor }) => Number(streamCursor));
  expect(cursors[0]).toBeGreaterThan(sent);
  expect(cursors[1]).toBeGreaterThanOrEqual(cursors[0] ?? 0);
  expect(Number(first.controls[1]?.streamCursor)).toBeLessThan(sent);
  first.close();
  ahead.close();
});

test("deletion ends readers; a stream made anew at the path is not theirs", async () => {
  await send("PUT", "gone", text, "old");
  const reader = await follow("gone");
  const poll = fetch(`${gateway.url}/v1/stream/gone?offset=now&live=long-poll`);
  await eventually(() => gauge("followers")).toBe(2);
  gateway.journal.held = true;
  const changes = [send("DELETE", "gone"), send("PUT", "gone", text, "newer")];
  await eventually(() => gateway.journal.reserved - gateway.journal.durable).toBeGreaterThanOrEqual(
    2,
  );
  gateway.journal.held = false;
  gateway.journal.commit();
  await Promise.all(changes);
  await eventually(() => reader.ended).toBe(true);
  expect(reader.data).toEqual(["old"]);
  expect([404, 410]).toContain((await poll).status);
});

test("an SSE answer ends after its lifetime and can be taken up again", async () => {
  const short = await startGateway({ sseLifetimeMs: 200 });
  try {
    await fetch(`${short.url}/v1/stream/s`, { method: "PUT", headers: text, body: "x" });
    const reader = await SseClient.open(`${short.url}/v1/stream/s?offset=-1&live=sse`);
    await eventually(() => reader.ended).toBe(true);
    expect([reader.answer.complete, reader.data]).toEqual([true, ["x"]]);
    const again = await SseClient.open(
      `${short.url}/v1/stream/s?offset=${reader.controls[0]?.streamNextOffset}&live=sse`,
    );
    await eventually(() => again.controls.length).toBe(1);
    expect(again.data).toEqual([]);
    again.close();
  } finally {
    await short.close();
  }
});

test("a reader that does not read costs bounded memory, and gets everything in the end", async () => {
  const small = await startGateway({ sseBacklogBytesMax: 256 * 1024 });
  try {
    await fetch(`${small.url}/v1/stream/s`, { method: "PUT", headers: text });
    const slow = await SseClient.open(`${small.url}/v1/stream/s?offset=-1&live=sse`);
    const quick = await SseClient.open(`${small.url}/v1/stream/s?offset=-1&live=sse`);
    slow.answer.pause();
    const record = "r".repeat(99_999);
    // Far more than the sockets' own buffers take.
    for (let i = 0; i < 200; i++) {
      await fetch(`${small.url}/v1/stream/s`, {
        method: "POST",
        headers: text,
        body: record + (i % 10),
      });
    }
    await eventually(() => quick.data.join("").length).toBe(20_000_000);
    expect(await (await fetch(`${small.url}/metrics`)).text()).toMatch(/sse_lagged_total [1-9]/);
    slow.answer.resume();
    await eventually(() => slow.data.join("").length).toBe(20_000_000);
    expect(slow.data.join("")).toBe(quick.data.join(""));
    expect(slow.controls.at(-1)?.upToDate).toBe(true);
    slow.close();
    quick.close();
  } finally {
    await small.close();
  }
}, 30_000);

test("a long-poll answers with what comes, at once when it is there, 204 when nothing does", async () => {
  await send("PUT", "poll", json);
  const poll = (offset: string): Promise<Response> =>
    send("GET", `poll?offset=${offset}&live=long-poll`);
  const waiting = poll("-1");
  await eventually(() => gauge("followers")).toBe(1);
  await send("POST", "poll", json, "[1,2]");
  const answer = await waiting;
  expect([answer.status, await answer.json(), answer.headers.get("stream-up-to-date")]).toEqual([
    200,
    [1, 2],
    "true",
  ]);
  expect(answer.headers.get("stream-cursor")).toMatch(/^\d+$/);
  expect(answer.headers.get("cache-control")).toBe("no-store");
  expect(await (await poll("-1")).json()).toEqual([1, 2]);
  const next = answer.headers.get("stream-next-offset") ?? "";
  const started = performance.now();
  const nothing = await poll(next);
  expect(performance.now() - started).toBeGreaterThan(400);
  expect([
    nothing.status,
    nothing.headers.get("stream-next-offset"),
    nothing.headers.get("stream-up-to-date"),
    nothing.headers.get("stream-closed"),
  ]).toEqual([204, next, "true", null]);
  const closing = poll(next);
  await eventually(() => gauge("followers")).toBe(1);
  await send("POST", "poll", { "stream-closed": "true" });
  expect([(await closing).status, (await closing).headers.get("stream-closed")]).toEqual([
    204,
    "true",
  ]);
  const closed = await poll(next);
  expect([
    closed.status,
    closed.headers.get("stream-closed"),
    closed.headers.get("stream-up-to-date"),
  ]).toEqual([204, "true", "true"]);
});

test("clients that go away leave nothing behind", async () => {
  await send("PUT", "away", text);
  const abort = new AbortController();
  const polls = Array.from({ length: 5 }, () =>
    fetch(`${gateway.url}/v1/stream/away?offset=now&live=long-poll`, {
      signal: abort.signal,
    }).catch(() => {}),
  );
  await eventually(() => gauge("followers")).toBe(5);
  abort.abort();
  await Promise.all(polls);
  await eventually(() => gauge("followers")).toBe(0);
  await eventually(() => gauge("requests_waiting")).toBe(0);
  expect((await send("POST", "away", text, "x")).status).toBe(204);
});
