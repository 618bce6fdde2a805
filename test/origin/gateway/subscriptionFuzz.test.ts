import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startGateway, type GatewayUnderTest } from "./gatewayUnderTest.ts";
import "./eventually.ts";

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.close());

const path = fc.constantFrom(
  "a",
  "b",
  "jobs/1",
  "jobs/2",
  "wake",
  "",
  "..",
  "_forebay/x",
  "%61",
  "a b",
);
const offset = fc.constantFrom("-1", "now", "0000000000000001_0000000000000001", "x", "");
const known: fc.Arbitrary<Record<string, unknown>> = fc.record(
  {
    type: fc.constantFrom("pull-wake", "webhook", "x"),
    pattern: fc.constantFrom("jobs/*", "**", "*", "", "a-*", "/a/"),
    streams: fc.array(path, { maxLength: 3 }),
    wake_stream: path,
    webhook: fc.record({ url: fc.constantFrom("http://127.0.0.1:1/", "https://10.0.0.1/", "x") }),
    lease_ttl_ms: fc.constantFrom(1000, 999, 1e300, -1),
    description: fc.string({ maxLength: 5 }),
    worker: fc.constantFrom("w", ""),
    wake_id: fc.constantFrom("w_1", ""),
    generation: fc.constantFrom(0, 1, 2, 1e300),
    acks: fc.array(fc.record({ stream: path, offset }, { requiredKeys: [] }), { maxLength: 3 }),
    done: fc.boolean(),
  },
  { requiredKeys: [] },
);
const good = [
  { type: "pull-wake", pattern: "jobs/*", wake_stream: "wake" },
  { type: "webhook", streams: ["a"], webhook: { url: "http://127.0.0.1:1/" } },
  { worker: "w", streams: ["a", "b"], wake_id: "w", generation: 1 },
].map((value) => JSON.stringify(value));
const body = fc.oneof(
  fc.constantFrom(...good),
  known.map((value) => JSON.stringify(value)),
  fc
    .tuple(known, fc.constantFrom("type", "streams", "acks", "webhook", "worker"), fc.jsonValue())
    .map(([value, field, other]) => JSON.stringify({ ...value, [field]: other })),
  fc.tuple(known, fc.nat(60)).map(([value, cut]) => JSON.stringify(value).slice(0, cut)),
  fc.json(),
  fc.string(),
);
const target = fc
  .tuple(
    fc.constantFrom(
      "subscriptions/s",
      "subscriptions/s",
      "subscriptions/t",
      "subscriptions",
      "jwks.json",
      "x",
      "",
    ),
    fc.constantFrom(
      "",
      "/streams",
      "/streams/a",
      "/claim",
      "/callback",
      "/ack",
      "/release",
      "/",
      "//x",
    ),
  )
  .map(([head, tail]) => `/v1/stream/__ds/${head}${tail}`);
const request = fc.record({
  method: fc.constantFrom("GET", "PUT", "PUT", "POST", "POST", "DELETE", "HEAD", "PATCH"),
  target,
  body,
  token: fc.option(fc.constantFrom("Bearer 1.x", "Bearer ", "Basic x")),
});

test("no request below __ds is a 500, and every refusal says why in both ways", async () => {
  const statuses = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 12 }), async (requests) => {
      for (const each of requests) {
        const bodiless = ["GET", "HEAD", "DELETE"].includes(each.method);
        const response = await fetch(gateway.url + each.target, {
          method: each.method,
          body: bodiless ? null : each.body,
          headers: each.token === null ? {} : { authorization: each.token },
        });
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
        const text = await response.text();
        expect(response.status).toBeLessThan(500);
        if (response.status >= 400 && each.method !== "HEAD" && each.method !== "PATCH") {
          const problem = JSON.parse(text) as { code: string; error: { code: string } };
          expect(problem.code).toMatch(/^[a-z_]+$/);
          expect(problem.error.code).toMatch(/^[A-Z_]+$/);
        }
      }
    }),
    { numRuns: 80 },
  );
  // The fuzz got through to all that the routes can answer.
  for (const status of [200, 201, 204, 400, 401, 404, 405]) {
    expect(statuses.get(status) ?? 0, String(status)).toBeGreaterThan(0);
  }
  expect((await fetch(`${gateway.url}/livez`)).status).toBe(200);
});
