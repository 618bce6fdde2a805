import { afterEach, beforeEach, expect, test } from "vitest";
import { startGateway, type GatewayUnderTest } from "./gatewayUnderTest.ts";
import { eventually } from "./eventually.ts";
import { SseClient } from "./sseClient.ts";

let gateway: GatewayUnderTest;
beforeEach(async () => {
  gateway = await startGateway();
});
afterEach(async () => {
  gateway.journal.held = false;
  gateway.journal.commit();
  await gateway.close();
});

const text = { "content-type": "text/plain" };

function send(
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body: string | null = null,
): Promise<Response> {
  return fetch(`${gateway.url}${path}`, { method, headers, body });
}

function producer(seq: number, epoch = 0): Record<string, string> {
  return {
    ...text,
    "producer-id": "p",
    "producer-epoch": String(epoch),
    "producer-seq": String(seq),
  };
}

/** Whether the answer is still held back, long after any answer that waits for nothing would be there. */
async function isHeld(answer: Promise<Response>): Promise<boolean> {
  const held = Symbol("held");
  const first = await Promise.race([
    answer,
    new Promise((resolve) => setTimeout(resolve, 150, held)),
  ]);
  return first === held;
}

/** Each request depends on an entry that is not durable yet. */
const dependants: readonly [string, () => Promise<Response>, number][] = [
  ["a duplicate", () => send("POST", "/v1/stream/s", producer(0), "again"), 204],
  ["a gap", () => send("POST", "/v1/stream/s", producer(5), "x"), 409],
  ["a stale epoch", () => send("POST", "/v1/stream/s", producer(0, 0), "x"), 403],
  ["an append to a closed stream", () => send("POST", "/v1/stream/s", text, "x"), 409],
  ["a read of a deleted stream", () => send("GET", "/v1/stream/s"), 404],
  ["a HEAD of a longer tail", () => send("HEAD", "/v1/stream/s"), 200],
  ["a second PUT", () => send("PUT", "/v1/stream/s", text), 200],
  ["a listing", () => send("GET", "/v1/streams"), 200],
];

/** What makes the newest state that each of them is judged by. */
const causes: Record<string, () => Promise<Response>> = {
  "a duplicate": () => send("POST", "/v1/stream/s", producer(0), "first"),
  "a gap": () => send("POST", "/v1/stream/s", producer(0), "first"),
  "a stale epoch": () => send("POST", "/v1/stream/s", producer(0, 1), "first"),
  "an append to a closed stream": () => send("POST", "/v1/stream/s", { "stream-closed": "true" }),
  "a read of a deleted stream": () => send("DELETE", "/v1/stream/s"),
  "a HEAD of a longer tail": () => send("POST", "/v1/stream/s", text, "first"),
  "a second PUT": () => send("POST", "/v1/stream/s", text, "first"),
  "a listing": () => send("POST", "/v1/stream/s", text, "first"),
};

test.each(dependants)("P17 %s waits for what it was judged by", async (name, ask, status) => {
  await send("PUT", "/v1/stream/s", text);
  gateway.journal.held = true;
  const cause = causes[name]?.() as Promise<Response>;
  await eventually(() => gateway.journal.reserved).toBe(2);
  const dependant = ask();
  expect(await isHeld(dependant)).toBe(true);
  gateway.journal.commit();
  expect((await cause).ok).toBe(true);
  expect((await dependant).status).toBe(status);
});

test.each(dependants)("P17 %s is of unknown outcome when that commit fails", async (name, ask) => {
  await send("PUT", "/v1/stream/s", text);
  gateway.journal.held = true;
  const cause = causes[name]?.() as Promise<Response>;
  await eventually(() => gateway.journal.reserved).toBe(2);
  const dependant = ask();
  expect(await isHeld(dependant)).toBe(true);
  gateway.journal.fail("the disk is gone");
  for (const answer of [await cause, await dependant]) {
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "1"]);
    const body = await answer.text();
    if (answer.url.endsWith("/v1/stream/s") && body !== "") {
      expect((JSON.parse(body) as { code: string }).code).toBe("outcome_unknown");
    }
  }
});

test("promise 4: readers see only what is durable", async () => {
  await send("PUT", "/v1/stream/s", text, "old ");
  gateway.journal.held = true;
  const append = send("POST", "/v1/stream/s", text, "new");
  await eventually(() => gateway.journal.reserved).toBe(2);
  const read = await send("GET", "/v1/stream/s");
  expect([await read.text(), read.headers.get("stream-up-to-date")]).toEqual(["old ", "true"]);
  gateway.journal.commit();
  await append;
  expect(await (await send("GET", "/v1/stream/s")).text()).toBe("old new");
});

test("P17 a read of a stream made anew waits for that stream to be durable", async () => {
  gateway.journal.held = true;
  const create = send("PUT", "/v1/stream/s", text);
  await eventually(() => gateway.journal.reserved).toBe(1);
  const reads = ["", "?offset=now", "?offset=-1&live=sse"].map((query) =>
    send("GET", `/v1/stream/s${query}`),
  );
  for (const read of reads) {
    expect(await isHeld(read)).toBe(true);
  }
  gateway.journal.commit();
  expect((await create).status).toBe(201);
  for (const read of await Promise.all(reads)) {
    expect(read.status).toBe(200);
    await read.body?.cancel();
  }
});

test("P10 a stream that was answered 201 is there on every connection", async () => {
  for (let i = 0; i < 20; i++) {
    expect((await send("PUT", `/v1/stream/s${i}`, text)).status).toBe(201);
    const reads = await Promise.all(
      Array.from({ length: 5 }, () => send("HEAD", `/v1/stream/s${i}`)),
    );
    expect(reads.map((read) => read.status)).toEqual(Array.from({ length: 5 }, () => 200));
  }
});

test("ack=none is answered before the commit, ack=edge and ack=origin after it", async () => {
  await send("PUT", "/v1/stream/s", text);
  gateway.journal.held = true;
  const none = await send("POST", "/v1/stream/s?ack=none", text, "n");
  expect([none.status, none.headers.get("forebay-ack")]).toEqual([202, "none"]);
  const edge = send("POST", "/v1/stream/s", { ...text, "forebay-ack": "Edge" }, "e");
  const origin = send("POST", "/v1/stream/s?ack=origin", text, "o");
  expect([await isHeld(edge), await isHeld(origin)]).toEqual([true, true]);
  gateway.journal.commit();
  for (const answer of [await edge, await origin]) {
    expect([answer.status, answer.headers.get("forebay-ack")]).toEqual([204, "origin"]);
  }
  expect(await (await send("GET", "/v1/stream/s")).text()).toBe("neo");
});

test("what became of ack=none is counted", async () => {
  const answer = await send("POST", "/v1/stream/unknown?ack=none", text, "n");
  expect(answer.status).toBe(202);
  const metrics = await (await send("GET", "/metrics")).text();
  expect(metrics).toContain("forebay_unacknowledged_total 1\n");
  expect(metrics).toContain("forebay_unacknowledged_refused_total 1\n");
});

test.each([
  ["disk_full", 507],
  ["store_full", 503],
  ["journal_failed", 503],
] as const)("%s is answered at once, nothing changed, and reads go on", async (code, status) => {
  await send("PUT", "/v1/stream/s", text, "kept");
  gateway.journal.refusal = code;
  const body = JSON.stringify([1]);
  const answers = [
    await send("POST", "/v1/stream/s", text, "lost"),
    await send("PUT", "/v1/stream/t", text),
    await send("DELETE", "/v1/stream/s"),
    await send("POST", "/v1/ingest/u", { "content-type": "application/json" }, body),
  ];
  for (const answer of answers) {
    expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([
      status,
      code,
    ]);
    expect(answer.headers.get("retry-after")).toBe("1");
  }
  gateway.journal.refusal = null;
  expect(await (await send("GET", "/v1/stream/s")).text()).toBe("kept");
  const { streams } = (await (await send("GET", "/v1/streams")).json()) as { streams: unknown[] };
  expect(streams).toHaveLength(1);
});

test("a full disk shows in /readyz, and stops showing when there is room again", async () => {
  gateway.journal.refusal = "disk_full";
  const full = await send("GET", "/readyz");
  expect(full.status).toBe(503);
  expect(await full.json()).toMatchObject({ status: "not ready", journal: { state: "full" } });
  gateway.journal.refusal = null;
  expect((await send("GET", "/readyz")).status).toBe(200);
});

test("after the journal failed writes are refused with a code, /readyz says why, reads go on", async () => {
  await send("PUT", "/v1/stream/s", text, "kept");
  expect((await send("GET", "/readyz")).status).toBe(200);
  gateway.journal.fail("EIO at segment 3");
  const write = await send("POST", "/v1/stream/s", text, "x");
  expect([write.status, ((await write.json()) as { code: string }).code]).toEqual([
    503,
    "journal_failed",
  ]);
  const ready = await send("GET", "/readyz");
  expect(ready.status).toBe(503);
  expect(await ready.json()).toMatchObject({
    status: "not ready",
    reason: "EIO at segment 3",
    storage: "direct",
  });
  expect((await send("GET", "/livez")).status).toBe(200);
  expect(await (await send("GET", "/v1/stream/s")).text()).toBe("kept");
  expect((await send("HEAD", "/v1/stream/s")).status).toBe(200);
  expect(await (await send("GET", "/metrics")).text()).toContain("forebay_journal_failed 1\n");
});

const remove = (): Promise<Response> => send("DELETE", "/v1/stream/s");
const put = (body: string): Promise<Response> => send("PUT", "/v1/stream/s", text, body);
const post = (body: string, headers: Record<string, string>): Promise<Response> =>
  send("POST", "/v1/stream/s", { ...text, ...headers }, body);

/** What can become of a stream while its SSE reader waits at the gate, and whether the answer ends by it. */
const whileWaiting: readonly [string, (() => Promise<Response>)[], boolean, string][] = [
  ["its stream is deleted", [remove], true, ""],
  ["its path becomes another stream", [remove, () => put("other")], true, ""],
  ["records come", [() => post("new", {})], false, "new"],
  ["the last record comes", [() => post("end", { "stream-closed": "true" })], true, "end"],
];

test.each(whileWaiting)(
  "promise 4: an SSE reader at the gate learns at once that %s",
  async (_what, made, ends, data) => {
    gateway.journal.held = true;
    const create = send("PUT", "/v1/stream/s", text);
    await eventually(() => gateway.journal.reserved).toBe(1);
    const opened = SseClient.open(`${gateway.url}/v1/stream/s?offset=-1&live=sse`);
    await eventually(() => gateway.streams.stats().waiting).toBe(2);
    const changes: Promise<Response>[] = [];
    for (const change of made) {
      changes.push(change());
      await eventually(() => gateway.journal.reserved).toBe(1 + changes.length);
    }
    gateway.journal.commit();
    const reader = await opened;
    await Promise.all([create, ...changes]);
    await eventually(() => reader.data.join("")).toBe(data);
    await eventually(() => reader.ended).toBe(ends);
    expect(gateway.streams.stats().followers).toBe(ends ? 0 : 1);
    reader.close();
  },
);

test.each([
  ["that its stream ended", () => void gateway.streams.remove("s"), 404, ""],
  ["what was stored", () => void gateway.streams.append(appendOf("new")), 200, "new"],
])("a long-poll learns %s between its read and its wait", async (_what, change, status, body) => {
  await send("PUT", "/v1/stream/s", text);
  const { streams, journal } = gateway;
  const read = streams.read.bind(streams);
  streams.read = (...asked) => {
    streams.read = read;
    queueMicrotask(() => {
      change();
      journal.commit();
    });
    return read(...asked);
  };
  const startedAt = performance.now();
  const answer = await send("GET", "/v1/stream/s?offset=-1&live=long-poll");
  expect(answer.status).toBe(status);
  expect(performance.now() - startedAt).toBeLessThan(400);
  if (status === 200) {
    expect(await answer.text()).toBe(body);
  }
});

function appendOf(body: string): Parameters<GatewayUnderTest["streams"]["append"]>[0] {
  return {
    path: "s",
    contentType: "text/plain",
    body: new TextEncoder().encode(body),
    producer: null,
    streamSeq: null,
    expectedOffset: null,
    close: false,
  };
}
