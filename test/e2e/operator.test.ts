import { afterAll, beforeAll, expect, test } from "vitest";
import { runCli } from "../origin/cli/terminal.ts";
import { FaultProxy, noFault } from "../support/faultProxy.ts";
import { startEdge, startOrigin, type EdgeProcess, type OriginProcess } from "./harness.ts";
import { ingest } from "./outboxClient.ts";
import { drained, outboxOf } from "./outboxes.ts";
import { readAll } from "./stream.ts";

/** The commands of an operator, against a real edge and origin. */
let origin: OriginProcess;
let proxy: FaultProxy;
let edge: EdgeProcess;
beforeAll(async () => {
  origin = await startOrigin();
  proxy = new FaultProxy(origin.port);
  edge = await startEdge({ originUrl: await proxy.listen() });
});
afterAll(async () => {
  await edge.stop();
  await proxy.close();
  await origin.stop();
});

const forebay = (args: readonly string[], url = edge.url) =>
  runCli(args, { env: { FOREBAY_URL: url } });

test("F14 outbox ls shows those in use, describe one whole, drain sends what waits", async () => {
  expect(await forebay(["outbox", "ls"])).toEqual({ code: 0, stdout: "", stderr: "" });
  const stream = "op/a";
  const partition = outboxOf(stream);
  await ingest(edge.url, stream, [1]);
  await drained(edge.url, stream);
  proxy.set(() => ({ kind: "cut", side: "request", after: 0 }));
  await ingest(edge.url, stream, [2, 3]);
  const listed = await forebay(["outbox", "ls"]);
  expect(listed.stdout).toMatch(
    new RegExp(`^${partition}  local:${partition}  1 frames  \\d+ bytes  oldest \\d+ s\n$`),
  );
  const whole = await forebay(["outbox", "describe", String(partition), "--json"]);
  expect(JSON.parse(whole.stdout)).toMatchObject({
    buffer: `local:${partition}`,
    frames: 1,
    ledger: { accepted: 3, inFrames: 2, acknowledged: 1, dead: 0 },
    health: { state: "ok" },
  });
  const stuck = await forebay(["outbox", "drain", String(partition), "--wait", "1"]);
  expect(stuck.code).not.toBe(0);
  expect(stuck.stderr).toContain("1 frames are still kept after 1 s");
  proxy.set(noFault);
  const done = await forebay(["outbox", "drain", String(partition)]);
  expect(done).toEqual({ code: 0, stdout: `local:${partition} is empty, FSN 2\n`, stderr: "" });
  expect(await readAll(origin.url, stream)).toEqual([1, 2, 3]);
});

test("dead ls is empty where nothing was given up; an unknown row or outbox is named", async () => {
  expect(await forebay(["dead", "ls"])).toEqual({ code: 0, stdout: "", stderr: "" });
  const show = await forebay(["dead", "show", "0", "5"]);
  expect(show.stderr).toContain("no frame given up stands at row 5");
  const far = await forebay(["dead", "replay", "64", "5"]);
  expect(far.stderr).toContain('there is no outbox "64"; they go from 0 to 7');
  const word = await forebay(["dead", "show", "0", "x"]);
  expect(word.stderr).toContain("give a whole number");
});

test("quarantine ls, show and replay: a record refused for its closed stream is found, and sent elsewhere", async () => {
  expect(await forebay(["quarantine", "ls"], origin.url)).toMatchObject({ code: 0, stdout: "" });
  const stream = "op/shut";
  await ingest(edge.url, stream, [1]);
  await drained(edge.url, stream);
  const at = `${origin.url}/v1/stream/${stream}`;
  await fetch(at, { method: "POST", headers: { "stream-closed": "true" } });
  await ingest(edge.url, stream, [2, [3]]);
  await drained(edge.url, stream);
  const listed = await forebay(["quarantine", "ls"], origin.url);
  expect(listed.stdout).toBe(`0  stream_closed  ${stream}  2 records\n`);
  const shown = await forebay(["quarantine", "show", "0"], origin.url);
  expect(shown.stdout).toBe("2\n[3]\n");
  const refused = await forebay(["quarantine", "replay", "0"], origin.url);
  expect(refused.stderr).toContain("stream_closed");
  await forebay(["append", "--create", "op/open", "1"], origin.url);
  const replayed = await forebay(["quarantine", "replay", "0", "--to", "op/open"], origin.url);
  expect(replayed.stdout).toMatch(/^[0-9a-f]{16}_[0-9a-f]{16}\n$/);
  expect(await readAll(origin.url, "op/open")).toEqual([1, 2, [3]]);
  const beyond = await forebay(["quarantine", "show", "1"], origin.url);
  expect(beyond.stderr).toContain("the quarantine holds no record 1");
});
