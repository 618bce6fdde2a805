import { beforeEach, expect, test } from "vitest";
import { catalogue, problemJson } from "../../shared/errors/mod.ts";
import { encodeMessage } from "../../shared/frame/mod.ts";
import { EdgeUnderTest, text } from "./edgeUnderTest.ts";
import { resultsResponse, StandInOrigin } from "./standInOrigin.ts";

let origin: StandInOrigin;
let edge: EdgeUnderTest;
beforeEach(() => {
  origin = new StandInOrigin();
  origin.install();
  edge = new EdgeUnderTest();
});

interface Outcome {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly retryAfter: string | null;
}

async function append(): Promise<Outcome> {
  const response = await edge.post("/v1/stream/u", "x", text);
  const body = response.status === 204 ? {} : ((await response.json()) as Partial<Outcome>);
  const { code = "", detail = "" } = body;
  return { status: response.status, code, detail, retryAfter: response.headers.get("retry-after") };
}

const lost = (): never => {
  throw new Error("Network connection lost.");
};

test("F1 no connection: origin_unreachable, and no byte of the write was sent", async () => {
  origin.onOther = null;
  const { status, code, detail, retryAfter } = await append();
  expect([status, code, retryAfter]).toEqual([503, "origin_unreachable", "1"]);
  expect(detail).toContain("nothing was stored");
  expect(origin.frames).toEqual([]);
});

test("F1 the reply lost: outcome_unknown; while the origin is in doubt it is asked before the next write is sent", async () => {
  expect((await append()).status).toBe(204);
  expect(origin.probes).toBe(1);
  origin.onFrame = lost;
  expect(await append()).toMatchObject({ status: 503, code: "outcome_unknown", retryAfter: "1" });
  expect(origin.frames).toHaveLength(2);
  origin.onOther = null;
  expect((await append()).code).toBe("origin_unreachable");
  expect(origin.frames).toHaveLength(2);
  origin.onOther = () => new Response("ok");
  origin.onFrame = null;
  expect((await append()).status).toBe(204);
  expect((await append()).status).toBe(204);
  expect(origin.probes).toBe(3);
});

test("F1 a reply that cannot be read, or has not one result for each request, proves nothing", async () => {
  const whole = encodeMessage({
    type: "results",
    results: [{ status: 204, code: null, detail: null, headers: {} }],
  });
  const replies = [
    () => new Response(whole.slice(0, -3)),
    () => new Response("hello"),
    () => new Response(""),
    () => resultsResponse([]),
    () => new Response("<html>bad gateway</html>", { status: 502 }),
    () => new Response(null, { status: 302, headers: { location: "http://elsewhere.test/" } }),
  ];
  for (const [i, reply] of replies.entries()) {
    origin.onFrame = reply;
    expect((await append()).code, `reply ${i}`).toBe("outcome_unknown");
  }
});

test("the origin's own refusal of a whole frame keeps its code and Retry-After", async () => {
  origin.onFrame = () =>
    new Response(problemJson("shutting_down", "going"), {
      status: 503,
      headers: { "content-type": "application/problem+json", "retry-after": "7" },
    });
  expect(await append()).toEqual({
    status: 503,
    code: "shutting_down",
    detail: "going",
    retryAfter: "7",
  });
  const nack = {
    buffer: "",
    epoch: "",
    fsn: 0,
    code: "journal_failed",
    retryable: true,
    expectedFsn: 0,
    message: "no disk",
  } as const;
  origin.onFrame = () => new Response(encodeMessage({ type: "nack", nack }));
  expect(await append()).toMatchObject({ status: 503, code: "journal_failed", detail: "no disk" });
});

test("an origin that refuses the edge's key is the edge's fault, never the client's 401", async () => {
  origin.onFrame = () => new Response(problemJson("unauthorized", "wrong key"), { status: 401 });
  const { status, code, detail } = await append();
  expect([status, code]).toEqual([503, "origin_unreachable"]);
  expect(detail).toContain("wrong key");
});

test.each(["bad_request", "request_timeout", "bad_frame"] as const)(
  "F1 a frame cut or damaged on its way (%s) is the link's fault, never the client's 400",
  async (code) => {
    const { status } = catalogue[code];
    origin.onFrame = () => new Response(problemJson(code, "the body ended early"), { status });
    const answer = await append();
    expect([answer.status, answer.code]).toEqual([503, "origin_unreachable"]);
    expect(answer.detail).toContain("the body ended early");
  },
);

test("a frame carries the edge's key, not the client's", async () => {
  edge = new EdgeUnderTest({ FOREBAY_KEY: "edge-key", ORIGIN_URL: "https://origin.test/base/" });
  let seen: [string, string | null] | null = null;
  const stand = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    const request = new Request(input, init as RequestInit);
    if (request.method === "POST") {
      seen = [request.url, request.headers.get("authorization")];
    }
    return await stand(
      `http://127.0.0.1:4437${new URL(request.url).pathname.replace("/base", "")}`,
      request,
    );
  };
  const response = await edge.post("/v1/stream/u", "x", {
    ...text,
    authorization: "Bearer edge-key",
  });
  expect(response.status).toBe(204);
  expect(seen).toEqual(["https://origin.test/base/v1/frames", "Bearer edge-key"]);
});
