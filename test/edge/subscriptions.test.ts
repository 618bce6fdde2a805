import { afterEach, beforeEach, expect, test } from "vitest";
import { EdgeUnderTest, json } from "./edgeUnderTest.ts";
import { StandInOrigin } from "./standInOrigin.ts";

let origin: StandInOrigin;
beforeEach(() => {
  origin = new StandInOrigin();
  origin.install();
  origin.onOther = () => new Response('{"ok":true}', { headers: json });
});
afterEach(() => {
  origin.onOther = null;
});

const root = "/v1/stream/__ds/subscriptions";
const key = { authorization: "Bearer right" };
const problem = async (response: Response): Promise<unknown[]> => {
  const body = (await response.json()) as { code: string; error: { code: string } };
  return [response.status, body.code, body.error.code];
};
const last = () => origin.forwarded.at(-1);

test("a subscription goes to the origin with the edge's key and the URL it was asked by", async () => {
  const edge = new EdgeUnderTest({ FOREBAY_KEY: "right" });
  const answer = await edge.fetch(`${root}/s%3A1`, {
    method: "PUT",
    headers: { ...json, ...key, "forebay-public-url": "https://evil.example" },
    body: '{"type":"webhook"}',
  });
  expect([answer.status, await answer.json()]).toEqual([200, { ok: true }]);
  expect([last()?.method, new URL(last()?.url ?? "").pathname, last()?.body]).toEqual([
    "PUT",
    `${root}/s:1`,
    '{"type":"webhook"}',
  ]);
  expect(last()?.headers.get("authorization")).toBe("Bearer right");
  expect(last()?.headers.get("forebay-public-url")).toBe("http://edge.test");
});

test("without the key nothing below __ds is passed on but the public keys and what shows a token", async () => {
  const edge = new EdgeUnderTest({ FOREBAY_KEY: "right" });
  for (const [method, path] of [
    ["PUT", "/s"],
    ["GET", "/s"],
    ["DELETE", "/s"],
    ["POST", "/s/streams"],
    ["DELETE", "/s/streams/a"],
    ["POST", "/s/claim"],
  ] as const) {
    const body = method === "GET" || method === "DELETE" ? null : "{}";
    const refused = await edge.fetch(root + path, { method, body });
    expect(await problem(refused), `${method} ${path}`).toEqual([
      401,
      "unauthorized",
      "UNAUTHORIZED",
    ]);
  }
  expect(origin.forwarded).toEqual([]);
  expect((await edge.fetch("/v1/stream/__ds/jwks.json")).status).toBe(200);
  for (const action of ["callback", "ack", "release"]) {
    const bare = await edge.post(`${root}/s/${action}`, "{}", json);
    expect(await problem(bare)).toEqual([401, "bad_token", "TOKEN_INVALID"]);
    const own = { ...json, authorization: "Bearer 1.token" };
    expect((await edge.post(`${root}/s/${action}`, "{}", own)).status).toBe(200);
    expect(last()?.headers.get("authorization")).toBe("Bearer 1.token");
  }
});

test("pages of other origins report nothing, paths that are none are refused, an absent origin is said", async () => {
  const edge = new EdgeUnderTest({ FOREBAY_ORIGINS: "https://app.example" });
  const evil = { ...json, authorization: "Bearer 1.t", origin: "https://evil.example" };
  expect(await problem(await edge.post(`${root}/s/ack`, "{}", evil))).toEqual([
    403,
    "origin_not_allowed",
    "ORIGIN_NOT_ALLOWED",
  ]);
  expect(await problem(await edge.fetch(`${root}/a//b`))).toEqual([
    400,
    "bad_path",
    "INVALID_REQUEST",
  ]);
  origin.onOther = null;
  expect(await problem(await edge.fetch(`${root}/s`))).toEqual([
    503,
    "origin_unreachable",
    "ORIGIN_UNREACHABLE",
  ]);
});

test("P14 no append and no ingest reaches a path below __ds", async () => {
  const edge = new EdgeUnderTest();
  for (const path of ["/v1/stream/%5f_ds/x", "/v1/ingest/__ds/x"]) {
    const response = await edge.post(path, "[1]", json);
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([
      403,
      "reserved_path",
    ]);
  }
  expect(origin.frames).toEqual([]);
});
