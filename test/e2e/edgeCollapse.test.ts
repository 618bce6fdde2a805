import { afterAll, beforeAll, expect, test } from "vitest";
import { startEdge, startOrigin, type EdgeProcess, type OriginProcess } from "./harness.ts";
import { until } from "./until.ts";

/** Over real sockets, because what crosses requests behaves otherwise in the runner's own contexts. */
const key = "a-key-for-this-test";
const text = { "content-type": "text/plain", authorization: `Bearer ${key}` };
let origin: OriginProcess;
let edge: EdgeProcess;
beforeAll(async () => {
  origin = await startOrigin({ key, flags: ["--long-poll-ms", "2s"] });
  edge = await startEdge({ originUrl: origin.url, key });
});
afterAll(async () => {
  await edge?.stop();
  await origin?.stop();
});

const urlOf = (name: string): string => `${edge.url}/v1/stream/collapse/${name}`;
const put = (name: string): Promise<Response> =>
  fetch(urlOf(name), { method: "PUT", headers: text });
const append = (name: string, body: string): Promise<Response> =>
  fetch(urlOf(name), { method: "POST", headers: text, body });
const tail = "offset=now&live=long-poll";

/** Long-polls the origin has answered, and readers that wait there now. */
async function metric(pattern: RegExp): Promise<number> {
  const metrics = await (await fetch(`${origin.url}/metrics`)).text();
  let sum = 0;
  for (const line of metrics.split("\n")) {
    sum += Number(pattern.exec(line)?.[1] ?? 0);
  }
  return sum;
}
const answered = (): Promise<number> =>
  metric(/^forebay_requests_total\{route="long_poll".*\} (\d+)$/);
const waiting = (): Promise<number> => metric(/^forebay_followers (\d+)$/);

test("readers at one tail ask the origin once, and each gets what comes", async () => {
  await put("herd");
  const before = await answered();
  const polls = Array.from({ length: 60 }, async () => {
    const answer = await fetch(`${urlOf("herd")}?${tail}`);
    return [answer.status, answer.headers.get("stream-next-offset"), await answer.text()];
  });
  await until("someone waits at the origin", async () => (await waiting()) > 0 || undefined);
  await new Promise((resolve) => setTimeout(resolve, 300));
  await append("herd", "news");
  const answers = await Promise.all(polls);
  expect(answers).toEqual(answers.map(() => [200, "0000000000000001_0000000000000004", "news"]));
  expect((await answered()) - before).toBeLessThanOrEqual(10);
});

test("the end of the wait is a 204 for each, and a refusal each one's own", async () => {
  await put("quiet");
  const ask = (name: string): Promise<(number | string | null)[]>[] =>
    Array.from({ length: 8 }, async () => {
      const answer = await fetch(`${urlOf(name)}?${tail}`);
      const body = await answer.text();
      return [answer.status, answer.headers.get("stream-up-to-date"), body === "" ? "" : "body"];
    });
  const [quiet, absent] = await Promise.all([
    Promise.all(ask("quiet")),
    Promise.all(ask("absent")),
  ]);
  expect(quiet).toEqual(quiet.map(() => [204, "true", ""]));
  expect(absent).toEqual(absent.map(() => [404, null, "body"]));
});

test("whoever asked may go away: the others get their answer", async () => {
  await put("left");
  const leaving = new AbortController();
  const first = fetch(`${urlOf("left")}?${tail}`, { signal: leaving.signal });
  const gone = first.then(
    () => "answered",
    (error: Error) => error.name,
  );
  const polls = Array.from({ length: 10 }, async () =>
    (await fetch(`${urlOf("left")}?${tail}`)).text(),
  );
  await until("someone waits at the origin", async () => (await waiting()) > 0 || undefined);
  await new Promise((resolve) => setTimeout(resolve, 300));
  leaving.abort();
  expect(await gone).toBe("AbortError");
  await append("left", "still here");
  expect(await Promise.all(polls)).toEqual(polls.map(() => "still here"));
});

test("a reader with the key shares with nobody", async () => {
  await put("own");
  const before = await answered();
  const polls = Array.from({ length: 5 }, async () =>
    (
      await fetch(`${urlOf("own")}?${tail}`, { headers: { authorization: `Bearer ${key}` } })
    ).text(),
  );
  await until("all wait at the origin", async () => (await waiting()) === 5 || undefined);
  await append("own", "x");
  expect(await Promise.all(polls)).toEqual(polls.map(() => "x"));
  expect((await answered()) - before).toBe(5);
});
