import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SseClient } from "../origin/gateway/sseClient.ts";
import { startEdge, startOrigin, type EdgeProcess, type OriginProcess } from "./harness.ts";
import { until } from "./until.ts";

/** What the protocol's own suite does not ask, at the origin and through the edge alike. */
const text = { "content-type": "text/plain" };
const json = { "content-type": "application/json" };
/** No answer takes that long; one that hangs is named by its stack instead of by the whole test's timeout. */
const patienceMs = 20_000;
const close = { "stream-closed": "true" };
const hex = (n: number): string => n.toString(16).padStart(16, "0");
const offset = (record: number, byte: number): string => `${hex(record)}_${hex(byte)}`;

let origin: OriginProcess;
let edge: EdgeProcess;
beforeAll(async () => {
  origin = await startOrigin({ flags: ["--long-poll-ms", "1s"] });
  edge = await startEdge({ originUrl: origin.url });
});
afterAll(async () => {
  await edge?.stop();
  await origin?.stop();
});

describe.each(["origin", "edge"] as const)("at the %s", (side) => {
  const urlOf = (name: string): string =>
    `${side === "origin" ? origin.url : edge.url}/v1/stream/protocol/${side}/${name}`;
  const send = (
    method: string,
    name: string,
    headers: Record<string, string> = {},
    body: string | Uint8Array<ArrayBuffer> | null = null,
  ): Promise<Response> =>
    fetch(urlOf(name), { method, headers, body, signal: AbortSignal.timeout(patienceMs) });
  const follow = async (name: string): Promise<SseClient> => {
    const url = `${urlOf(name)}?offset=-1&live=sse`;
    const late = new Promise<never>((_, reject) => {
      setTimeout(() => reject(new Error(`no answer from ${url}`)), patienceMs).unref();
    });
    return await Promise.race([SseClient.open(url), late]);
  };
  /** Status, and the problem's code when there is one. */
  const outcome = async (
    method: string,
    name: string,
    headers: Record<string, string> = {},
    body: string | null = null,
  ): Promise<string> => {
    const answer = await send(method, name, headers, body);
    const problem = /problem\+json/.test(answer.headers.get("content-type") ?? "");
    const { code } = problem ? ((await answer.json()) as { code: string }) : { code: "" };
    await answer.body?.cancel().catch(() => {});
    return `${answer.status} ${code}`.trim();
  };
  const read = async (name: string): Promise<string> => (await send("GET", name)).text();

  test("P1 what is wrong first is what is said", async () => {
    const by = (epoch: number, seq: number): Record<string, string> => ({
      "producer-id": "p",
      "producer-epoch": String(epoch),
      "producer-seq": String(seq),
    });
    await send("PUT", "order", text);
    const everything = { ...json, ...by(0, 9), "stream-seq": "a", "stream-expected-offset": "x" };
    await send("POST", "order", { ...text, ...by(1, 0), "stream-seq": "b" }, "first");
    expect(await outcome("POST", "absent", everything, "[]")).toBe("404 stream_not_found");
    expect(await outcome("POST", "order", everything, "1")).toBe("403 stale_epoch");
    expect(await outcome("POST", "order", { ...json, ...by(1, 0) }, "1")).toBe("204");
    expect(await outcome("POST", "order", { ...json, ...by(1, 5) }, "1")).toBe(
      "409 content_type_mismatch",
    );
    expect(await outcome("POST", "order", { ...text, ...by(1, 5) }, "1")).toBe("409 producer_gap");
    const late = { ...text, "stream-seq": "a", "stream-expected-offset": offset(9, 9) };
    expect(await outcome("POST", "order", late, "1")).toBe("409 stream_seq_regression");
    const missed = { ...late, "stream-seq": "c" };
    expect(await outcome("POST", "order", missed, "1")).toBe("409 offset_mismatch");
    await send("POST", "order", close);
    expect(await outcome("POST", "order", everything, "1")).toBe("403 stale_epoch");
    expect(await outcome("POST", "order", { ...json, ...by(1, 0) }, "1")).toBe("204");
    expect(await outcome("POST", "order", { ...json, ...by(1, 5) }, "1")).toBe("409 stream_closed");
    await send("PUT", "order-fork", { "stream-forked-from": new URL(urlOf("order")).pathname });
    await send("DELETE", "order");
    expect(await outcome("POST", "order", everything, "1")).toBe("410 stream_gone");
  });

  test("P2 a reader at the tail gets the last data before the end", async () => {
    await send("PUT", "last", text);
    const reader = await follow("last");
    await until("the reader stands at the tail", async () => reader.controls[0]);
    await send("POST", "last", { ...text, ...close }, "bye");
    await until("the end of the answer", async () => reader.ended || undefined);
    expect(reader.events.slice(1).map(({ event }) => event)).toEqual(["data", "control"]);
    expect(reader.data).toEqual(["bye"]);
    expect(reader.controls.map(({ streamClosed }) => streamClosed ?? false)).toEqual([false, true]);
  });

  test("P3 many values of one read are one data event and one control event", async () => {
    await send("PUT", "many", json, "[1,2,3]");
    await send("POST", "many", json, "[4]");
    await send("POST", "many", json, "5");
    const reader = await follow("many");
    await until("the reader stands at the tail", async () => reader.controls[0]);
    expect(reader.events.map(({ event }) => event)).toEqual(["data", "control"]);
    expect(reader.data.map((each) => JSON.parse(each) as unknown)).toEqual([[1, 2, 3, 4, 5]]);
    expect(reader.controls[0]).toMatchObject({ streamNextOffset: offset(5, 5), upToDate: true });
    reader.close();
  });

  test("P4 every kind of read and write keeps a stream with a sliding TTL, HEAD does not", async () => {
    const names = ["304", "get", "now", "poll", "sse", "append", "producer", "head"];
    await Promise.all(
      names.map((name) => send("PUT", `ttl/${name}`, { ...text, "stream-ttl": "4" }, "x")),
    );
    const etag = (await send("GET", "ttl/304")).headers.get("etag") ?? "";
    const by = { "producer-id": "p", "producer-epoch": "0" };
    const uses: Record<string, (n: number) => Promise<unknown>> = {
      get: () => read("ttl/get"),
      now: () => read("ttl/now?offset=now"),
      "304": () => send("GET", "ttl/304", { "if-none-match": etag }),
      poll: () => read("ttl/poll?offset=-1&live=long-poll"),
      sse: async () => (await follow("ttl/sse")).close(),
      append: () => send("POST", "ttl/append", text, "y"),
      producer: (n) =>
        send("POST", "ttl/producer", { ...text, ...by, "producer-seq": `${n}` }, "y"),
      head: () => send("HEAD", "ttl/head"),
    };
    for (let n = 0; n < 4; n++) {
      await new Promise((resolve) => setTimeout(resolve, 1500));
      await Promise.all(Object.values(uses).map((use) => use(n)));
    }
    const left = await Promise.all(names.map((name) => send("HEAD", `ttl/${name}`)));
    expect(left.map(({ status }) => status)).toEqual([...names.slice(1).map(() => 200), 404]);
  });

  test("P5 a refused fork leaves its source free to go, a made one keeps it", async () => {
    const from = { "stream-forked-from": new URL(urlOf("source")).pathname };
    await send("PUT", "source", text, "abc");
    expect(await outcome("PUT", "fork", { ...json, ...from })).toBe("409 content_type_mismatch");
    expect(await outcome("PUT", "fork", { ...from, "stream-fork-sub-offset": "1" })).toBe(
      "400 bad_offset",
    );
    await send("DELETE", "source");
    expect(await outcome("GET", "source")).toBe("404 stream_not_found");
    await send("PUT", "source", text, "xyz");
    const head = { ...from, "stream-fork-offset": offset(0, 0), "stream-fork-sub-offset": "2" };
    const [first, again] = [await outcome("PUT", "fork", head), await outcome("PUT", "fork", head)];
    expect([first, again]).toEqual(["201", "200"]);
    await send("POST", "fork", text, "!");
    await send("DELETE", "source");
    expect(await read("fork")).toBe("xy!");
    expect(await outcome("GET", "source")).toBe("410 stream_gone");
    expect(await outcome("PUT", "source", text)).toBe("409 path_held");
    await send("DELETE", "fork");
    expect(await outcome("GET", "source")).toBe("404 stream_not_found");
  });

  test("P6 an ETag names the bytes, the end and the life; conditions are HTTP's", async () => {
    const tags: string[] = [];
    const note = async (): Promise<void> => {
      tags.push((await send("GET", "tag")).headers.get("etag") ?? "none");
    };
    await send("PUT", "tag", text, "x");
    await note();
    for (const condition of [tags[0], `W/${tags[0]}`, `"a", W/${tags[0]}`, "*"]) {
      const answer = await send("GET", "tag", { "if-none-match": condition ?? "" });
      expect([answer.status, answer.headers.get("etag")]).toEqual([304, tags[0]]);
    }
    await send("POST", "tag", close);
    await note();
    await send("DELETE", "tag");
    await send("PUT", "tag", text, "x");
    await note();
    expect(new Set([...tags, "none"]).size).toBe(4);
    expect((await send("GET", "tag?offset=now")).headers.get("etag")).toBeNull();
    const caching = (name: string) => send("GET", name).then((a) => a.headers.get("cache-control"));
    expect(await caching("tag")).toBe("no-cache");
    expect(await caching("tag?offset=now")).toBe("no-store");
  });

  test("P7 an answer is cut at 4 MiB over all of it, forks included; a larger record comes whole", async () => {
    const mega = 1024 * 1024;
    const record = (letter: string, bytes: number) => Buffer.alloc(bytes, letter);
    await send("PUT", "large", text, record("a", 3 * mega));
    await send("POST", "large", text, record("b", mega));
    await send("PUT", "large-fork", { "stream-forked-from": new URL(urlOf("large")).pathname });
    await send("POST", "large-fork", text, record("c", 1));
    await send("POST", "large-fork", text, record("d", 5 * mega));
    const found: [string, number][] = [];
    let from = "-1";
    for (let upToDate = false; !upToDate;) {
      const answer = await send("GET", `large-fork?offset=${from}`);
      const body = await answer.text();
      found.push([body[0] ?? "", body.length]);
      from = answer.headers.get("stream-next-offset") ?? "";
      upToDate = answer.headers.get("stream-up-to-date") === "true";
    }
    expect(found).toEqual([
      ["a", 4 * mega],
      ["c", 1],
      ["d", 5 * mega],
    ]);
  });

  test("P8 JSON comes back as the bytes that went in, and bad JSON is a 400", async () => {
    const odd = '{"b":1.0,"a":1e400,"a":"\\u0041","n":12345678901234567890,"__proto__":{"x":1}}';
    await send("PUT", "exact", json);
    await send("POST", "exact", json, ` [ ${odd} , "\\ud800" ] `);
    expect(await read("exact")).toBe(`[${odd},"\\ud800"]`);
    const deep = "[".repeat(100_000) + "]".repeat(100_000);
    expect(await outcome("POST", "exact", json, deep)).toBe("400 json_too_deep");
    expect(await outcome("POST", "exact", json, "[1,]")).toBe("400 bad_json");
    expect(await outcome("POST", "exact", json, "[]")).toBe("400 empty_array");
    expect(await read("exact")).toBe(`[${odd},"\\ud800"]`);
  });

  test("P10 a stream that was answered 201 is there for everybody at once", async () => {
    for (let n = 0; n < 10; n++) {
      expect((await send("PUT", `seen/${n}`, text, "x")).status).toBe(201);
      const seen = await Promise.all(Array.from({ length: 8 }, () => read(`seen/${n}`)));
      expect(seen).toEqual(seen.map(() => "x"));
    }
  });

  test("P11 an offset that is none here tells how to go on, and is not echoed", async () => {
    await send("PUT", "short", text, "abc");
    for (const bad of [offset(9, 9), offset(1, 1), offset(0, 1)]) {
      for (const live of ["", "&live=long-poll", "&live=sse"]) {
        const answer = await send("GET", `short?offset=${bad}${live}`);
        expect([answer.status, answer.headers.get("stream-next-offset")]).toEqual([
          400,
          offset(1, 3),
        ]);
        await answer.body?.cancel();
      }
    }
    expect(await outcome("GET", "short?offset=latest")).toBe("400 bad_offset");
  });

  test("P13 pages may send what clients send and read what they read", async () => {
    const page = { origin: "http://localhost:3000" };
    const asked = { ...page, "access-control-request-method": "PUT" };
    const answer = await send("OPTIONS", "cors", asked);
    const list = (name: string): string[] =>
      (answer.headers.get(name) ?? "").split(", ").map((each) => each.toLowerCase());
    expect(list("access-control-allow-headers")).toEqual(
      expect.arrayContaining(["if-none-match", "stream-forked-from", "producer-seq", "stream-seq"]),
    );
    expect(answer.headers.get("access-control-max-age")).toBe("7200");
    const got = await send("PUT", "cors", { ...page, ...text });
    expect(got.headers.get("access-control-allow-origin")).toBe(page.origin);
    expect(got.headers.get("access-control-expose-headers")).toMatch(/stream-next-offset/i);
    for (const each of [got, await send("GET", "cors"), await send("GET", "none")]) {
      expect(each.headers.get("x-content-type-options")).toBe("nosniff");
      expect(each.headers.get("cross-origin-resource-policy")).toBe("cross-origin");
      await each.body?.cancel();
    }
  });

  test("P14 a path has one spelling, however it comes", async () => {
    await send("PUT", "pa%74h/%C3%BC", text, "x");
    for (const same of ["path/%c3%bc", "%70ath/ü", "path%2f%C3%BC"]) {
      expect([same, await read(same)]).toEqual([same, "x"]);
    }
    expect(await outcome("GET", "Path/%C3%BC")).toBe("404 stream_not_found");
    for (const bad of ["path//x", "path/", "%", "%FF", "a%00b", "a%5cb", "a/%2F/b"]) {
      expect([bad, await outcome("GET", bad)]).toEqual([bad, "400 bad_path"]);
      expect([bad, await outcome("PUT", bad, text)]).toEqual([bad, "400 bad_path"]);
    }
  });

  test("P15 token by token, on many streams at once, a reader sees each in order", async () => {
    const tokens = Array.from({ length: 25 }, (_, n) => `t${n} `);
    await Promise.all(
      Array.from({ length: 12 }, async (_, n) => {
        const name = `tokens/${n}`;
        await send("PUT", name, text);
        const reader = await follow(name);
        for (const token of tokens) {
          expect((await send("POST", name, text, token)).status).toBe(204);
        }
        await send("POST", name, close);
        await until("the end of the answer", async () => reader.ended || undefined);
        expect(reader.data.join("")).toBe(tokens.join(""));
        expect(reader.controls.at(-1)?.streamClosed).toBe(true);
      }),
    );
  });

  test("P16 of many who append at the same expected offset one succeeds, the rest learn the tail", async () => {
    await send("PUT", "occ", text);
    const expected = { ...text, "stream-expected-offset": offset(0, 0) };
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) => send("POST", "occ", expected, `${n}`)),
    );
    const stored = answers.filter(({ status }) => status === 204);
    const missed = answers.filter(({ status }) => status === 409);
    expect([stored.length, missed.length]).toEqual([1, 7]);
    for (const each of answers) {
      expect(each.headers.get("stream-next-offset")).toBe(offset(1, 1));
    }
  });

  test("P16 any +json type is JSON", async () => {
    const type = { "content-type": "application/vnd.api+json; charset=utf-8" };
    await send("PUT", "suffix", type, "[1,2]");
    await send("POST", "suffix", type, "[3]");
    expect(await read("suffix")).toBe("[1,2,3]");
    expect(await outcome("POST", "suffix", type, "{")).toBe("400 bad_json");
    const list = (await (
      await fetch(
        `${side === "origin" ? origin.url : edge.url}/v1/streams?prefix=protocol/${side}/suffix`,
      )
    ).json()) as { streams: unknown[] };
    expect(list.streams).toEqual([
      {
        path: `protocol/${side}/suffix`,
        contentType: type["content-type"],
        tail: offset(3, 3),
        closed: false,
        ttlSeconds: null,
        expiresAt: null,
      },
    ]);
  });
});

test("P9 P5 a killed origin comes back with its producers and its forks, seen through the edge", async () => {
  const at = `${edge.url}/v1/stream/kill`;
  const by = { ...text, "producer-id": "p", "producer-epoch": "0", "producer-seq": "0" };
  const post = (): Promise<Response> =>
    fetch(`${at}/s`, { method: "POST", headers: by, body: "x" });
  await fetch(`${at}/s`, { method: "PUT", headers: text });
  expect((await post()).status).toBe(200);
  const from = { "stream-forked-from": "/v1/stream/kill/s" };
  expect((await fetch(`${at}/f`, { method: "PUT", headers: from })).status).toBe(201);
  expect((await fetch(`${at}/g`, { method: "PUT", headers: from })).status).toBe(201);
  await fetch(`${at}/g`, { method: "DELETE" });
  const { dataDir, port, stop } = origin;
  await origin.crash();
  const again = await startOrigin({ dataDir, port });
  // The first one's `stop` has still to remove the data.
  origin = { ...again, stop: () => again.stop().then(() => stop()) };
  await until(
    "the edge finds the origin again",
    async () => (await post()).status === 204 || undefined,
  );
  expect(await (await fetch(`${at}/s`)).text()).toBe("x");
  await fetch(`${at}/s`, { method: "DELETE" });
  expect((await fetch(`${at}/s`)).status).toBe(410);
  expect(await (await fetch(`${at}/f`)).text()).toBe("x");
  await fetch(`${at}/f`, { method: "DELETE" });
  expect((await fetch(`${at}/s`)).status).toBe(404);
});
