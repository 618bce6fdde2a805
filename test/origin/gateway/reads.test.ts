import { afterAll, beforeAll, expect, test } from "vitest";
import { startGateway, type GatewayUnderTest } from "./gatewayUnderTest.ts";
import "./eventually.ts";

const readBytesMax = 1000;
let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await startGateway({ readBytesMax });
});
afterAll(() => gateway.close());

function send(
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body: string | Uint8Array<ArrayBuffer> | null = null,
): Promise<Response> {
  return fetch(`${gateway.url}/v1/stream/${path}`, { method, headers, body });
}

const text = { "content-type": "text/plain" };
const json = { "content-type": "application/json" };

/** All pages from the start: body, and whether the answer said it was the tail. */
async function pages(path: string): Promise<{ body: string; upToDate: boolean }[]> {
  const found: { body: string; upToDate: boolean }[] = [];
  let offset = "-1";
  for (;;) {
    const answer = await send("GET", `${path}?offset=${offset}`);
    expect(answer.status).toBe(200);
    const upToDate = answer.headers.get("stream-up-to-date") === "true";
    found.push({ body: await answer.text(), upToDate });
    offset = answer.headers.get("stream-next-offset") ?? "";
    if (upToDate) {
      return found;
    }
  }
}

test("P7 a response is cut at a record boundary, one larger record comes whole", async () => {
  await send("PUT", "cut", text);
  for (const [letter, bytes] of [
    ["a", 400],
    ["b", 400],
    ["c", 400],
    ["d", 3000],
    ["e", 1],
  ] as const) {
    await send("POST", "cut", text, letter.repeat(bytes));
  }
  const found = await pages("cut");
  expect(found.map(({ body, upToDate }) => [body[0], body.length, upToDate])).toEqual([
    ["a", 800, false],
    ["c", 400, false],
    ["d", 3000, false],
    ["e", 1, true],
  ]);
});

test("P7 a cut JSON response is an array like any other", async () => {
  await send("PUT", "jsoncut", json);
  const values = Array.from({ length: 30 }, (_, i) => `{"n":${i},"pad":"${"p".repeat(80)}"}`);
  await send("POST", "jsoncut", json, `[${values.join(",")}]`);
  const found = await pages("jsoncut");
  expect(found.length).toBeGreaterThan(2);
  const read = found.flatMap(({ body }) => JSON.parse(body) as { n: number }[]);
  expect(read.map(({ n }) => n)).toEqual(Array.from({ length: 30 }, (_, i) => i));
});

test("P8 JSON is read back as the bytes that came", async () => {
  const odd = '{"b":1.0,"a":1e400,"a":"\\u0041","n":12345678901234567890,"__proto__":{"x":1}}';
  await send("PUT", "exact", json);
  await send("POST", "exact", json, ` [ ${odd} , "\\ud800" ] `);
  expect(await (await send("GET", "exact")).text()).toBe(`[${odd},"\\ud800"]`);
});

test("P6 an ETag changes with data, with closure and with the stream's life; there is none for now", async () => {
  const tags = new Set<string | null>();
  const tag = async (): Promise<void> => {
    tags.add((await send("GET", "tagged")).headers.get("etag"));
  };
  await send("PUT", "tagged", text, "x");
  await tag();
  await send("POST", "tagged", text, "y");
  await tag();
  await send("POST", "tagged", { "stream-closed": "true" });
  await tag();
  await send("DELETE", "tagged");
  await send("PUT", "tagged", text, "x");
  await tag();
  expect(tags.size).toBe(4);
  expect([...tags].every((each) => each !== null && /^"[\x21\x23-\x7e]+"$/.test(each))).toBe(true);
  expect((await send("GET", "tagged?offset=now")).headers.get("etag")).toBeNull();
});

test("P6 the ETag of HEAD is that of a GET from the start, where one answer holds all", async () => {
  const tagOf = async (method: string, condition = ""): Promise<unknown[]> => {
    const answer = await send(
      method,
      "headed",
      condition === "" ? {} : { "if-none-match": condition },
    );
    return [answer.status, answer.headers.get("etag")];
  };
  await send("PUT", "headed", text);
  const tags = [await tagOf("HEAD")];
  expect(await tagOf("GET")).toEqual(tags[0]);
  await send("POST", "headed", text, "x".repeat(readBytesMax - 1));
  await send("POST", "headed", text, "y");
  tags.push(await tagOf("HEAD"));
  expect(await tagOf("GET")).toEqual(tags[1]);
  await send("POST", "headed", { "stream-closed": "true" });
  tags.push(await tagOf("HEAD"));
  expect(await tagOf("GET")).toEqual(tags[2]);
  expect(new Set(tags.map(String)).size).toBe(3);
  expect(await tagOf("GET", String(tags[2]?.[1]))).toEqual([304, tags[2]?.[1]]);
  await send("PUT", "longer", text, "x".repeat(readBytesMax));
  await send("POST", "longer", text, "y");
  expect((await send("HEAD", "longer")).headers.get("etag")).toBeNull();
});

test("P6 If-None-Match takes lists, weak tags and a star", async () => {
  await send("PUT", "cond", text, "x");
  const etag = (await send("GET", "cond")).headers.get("etag") ?? "";
  for (const condition of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
    const answer = await send("GET", "cond", { "if-none-match": condition });
    expect([condition, answer.status, await answer.text()]).toEqual([condition, 304, ""]);
    expect(answer.headers.get("etag")).toBe(etag);
    expect(answer.headers.get("stream-next-offset")).toBe("0000000000000001_0000000000000001");
  }
  for (const condition of ['"other"', etag.slice(1, -1), ""]) {
    expect((await send("GET", "cond", { "if-none-match": condition })).status).toBe(200);
  }
});

const cacheOf = async (path: string, headers: Record<string, string> = {}) =>
  (await send("GET", path, headers)).headers.get("cache-control");
const [offset1, offset2, offset3] = [1, 2, 3].map((n) => {
  const hex = (value: number): string => value.toString(16).padStart(16, "0");
  return `${hex(n)}_${hex(n * 900)}`;
});

/** Three records of 900 bytes: each is a page of its own. */
async function threePages(path: string, headers: Record<string, string>): Promise<void> {
  await send("PUT", path, { ...text, ...headers });
  for (const letter of "abc") {
    await send("POST", path, text, letter.repeat(900));
  }
}

test("P4 P6 caches keep what can no longer change for as long as the lifetime allows, and never the tail", async () => {
  const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
  await threePages("hist", {});
  await threePages("hist-ttl", { "stream-ttl": "80" });
  await threePages("hist-short", { "stream-ttl": "7" });
  await threePages("hist-end", { "stream-expires-at": inAnHour });
  expect(await cacheOf("hist")).toBe("public, max-age=60");
  expect(await cacheOf("hist?offset=-1")).toBe("public, max-age=60");
  expect(await cacheOf(`hist?offset=${offset1}`)).toBe("public, max-age=86400");
  expect(await cacheOf("hist-ttl")).toBe("public, max-age=10");
  expect(await cacheOf(`hist-ttl?offset=${offset1}`)).toBe("public, max-age=10");
  expect(await cacheOf(`hist-short?offset=${offset1}`)).toBe("no-cache");
  expect(await cacheOf(`hist-end?offset=${offset1}`)).toMatch(/^public, max-age=3(600|59\d)$/);
  for (const at of [offset2, offset3]) {
    expect(await cacheOf(`hist?offset=${at}`)).toBe("no-cache");
    expect(await cacheOf(`hist?offset=${at}`, { authorization: "Bearer x" })).toBe(
      "private, no-cache",
    );
  }
  expect(await cacheOf("hist?offset=now")).toBe("no-store");
  expect((await send("HEAD", "hist")).headers.get("cache-control")).toBe("no-store");
  expect(await cacheOf(`hist?offset=${offset2}&live=long-poll`)).toBe("no-store");
  expect(await cacheOf(`hist?offset=${offset3}&live=long-poll`)).toBe("no-store");
});

test("the end of a closed stream is a range like those before it", async () => {
  await threePages("over", {});
  expect(await cacheOf(`over?offset=${offset2}`)).toBe("no-cache");
  await send("POST", "over", { "stream-closed": "true" });
  for (const at of [offset1, offset2, offset3]) {
    expect(await cacheOf(`over?offset=${at}`)).toBe("public, max-age=86400");
  }
});

test("an answer to a request with a key is private", async () => {
  await threePages("keyed", {});
  const bearer = { authorization: "Bearer k" };
  expect(await cacheOf(`keyed?offset=${offset1}`, bearer)).toBe("private, max-age=86400");
  expect(await cacheOf(`keyed?offset=${offset1}&key=k`)).toBe("private, max-age=86400");
  expect(await cacheOf(`keyed?offset=${offset1}`)).toBe("public, max-age=86400");
});

test("P11 an offset past the tail is refused with the tail, not echoed", async () => {
  await send("PUT", "short", text, "x");
  const answer = await send("GET", "short?offset=0000000000000009_0000000000000009");
  expect(answer.status).toBe(400);
  expect(answer.headers.get("stream-next-offset")).toBe("0000000000000001_0000000000000001");
});

test("a closed stream says so at its end only", async () => {
  await send("PUT", "ends", text, "a".repeat(900));
  await send("POST", "ends", { ...text, "stream-closed": "TRUE" }, "b".repeat(900));
  const first = await send("GET", "ends");
  expect(first.headers.get("stream-closed")).toBeNull();
  const last = await send("GET", `ends?offset=${first.headers.get("stream-next-offset")}`);
  expect([await last.text(), last.headers.get("stream-closed")]).toEqual(["b".repeat(900), "true"]);
  const end = await send("GET", `ends?offset=${last.headers.get("stream-next-offset")}`);
  expect([end.status, await end.text(), end.headers.get("stream-closed")]).toEqual([
    200,
    "",
    "true",
  ]);
});

test("streams are listed in order, by prefix, page by page", async () => {
  for (const name of ["b", "a", "c/x", "c/y", "d"]) {
    await send("PUT", `list/${name}`, json);
  }
  const list = async (
    query: string,
  ): Promise<{ streams: { path: string }[]; next: string | null }> =>
    (await (await fetch(`${gateway.url}/v1/streams?${query}`)).json()) as never;
  const pathsOf = async (query: string): Promise<string[]> =>
    (await list(query)).streams.map(({ path }) => path);
  expect(await pathsOf("prefix=list/")).toEqual([
    "list/a",
    "list/b",
    "list/c/x",
    "list/c/y",
    "list/d",
  ]);
  expect(await pathsOf("prefix=list/c/")).toEqual(["list/c/x", "list/c/y"]);
  const first = await list("prefix=list/&limit=2");
  expect([first.streams.length, first.next]).toEqual([2, "list/b"]);
  const rest = await list(`prefix=list/&limit=3&after=${first.next}`);
  expect([rest.streams.map(({ path }) => path), rest.next]).toEqual([
    ["list/c/x", "list/c/y", "list/d"],
    null,
  ]);
  expect(rest.streams[0]).toEqual({
    path: "list/c/x",
    contentType: "application/json",
    tail: "0000000000000000_0000000000000000",
    closed: false,
    ttlSeconds: null,
    expiresAt: null,
  });
});

test("metrics count answers by route and status", async () => {
  const count = async (): Promise<number> => {
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    return Number(
      /forebay_requests_total\{route="append",status="4xx"\} (\d+)/.exec(metrics)?.[1] ?? 0,
    );
  };
  const before = await count();
  await send("POST", "nowhere", text, "x");
  await send("POST", "nowhere", text, "x");
  expect(await count()).toBe(before + 2);
});
