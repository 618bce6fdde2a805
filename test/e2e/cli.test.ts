import { afterAll, beforeAll, expect, test } from "vitest";
import { runCli } from "../origin/cli/terminal.ts";
import { startOrigin, type OriginProcess } from "./harness.ts";

let origin: OriginProcess;
beforeAll(async () => {
  origin = await startOrigin({ key: "sesame", flags: ["--long-poll-ms", "300ms"] });
});
afterAll(async () => {
  await origin?.stop();
});

const forebay = (args: readonly string[], stdin?: string) =>
  runCli(args, {
    env: { FOREBAY_URL: origin.url, FOREBAY_KEY: "sesame" },
    ...(stdin === undefined ? {} : { stdin }),
  });
const offset = /^[0-9a-f]{16}_[0-9a-f]{16}\n$/;

test("append creates, appends arguments in order and prints the next offset; read gives them back as text", async () => {
  const made = await forebay(["append", "--create", "a/b c", '{"a":1,"a":2}', "1e999", '"ü"']);
  expect(made).toEqual({ code: 0, stdout: expect.stringMatching(offset), stderr: "" });
  const read = await forebay(["read", "a/b c"]);
  expect(read).toEqual({ code: 0, stdout: '{"a":1,"a":2}\n1e999\n"ü"\n', stderr: "" });
  const rest = await forebay(["read", "a/b c", "--offset", made.stdout.trim()]);
  expect(rest).toEqual({ code: 0, stdout: "", stderr: "" });
});

test("append reads stdin line by line, far more than one request holds", async () => {
  const lines = Array.from({ length: 2500 }, (_, i) => `{"i":${i}}`);
  const { code, stdout } = await forebay(
    ["append", "--create", "lines", "-", "--json"],
    `${lines.join("\r\n")}\n\n`,
  );
  expect(code).toBe(0);
  const said: { next: string } = JSON.parse(stdout);
  expect(said).toMatchObject({ stream: "lines", records: 2500 });
  expect(`${said.next}\n`).toMatch(offset);
  const read = await forebay(["read", "lines"]);
  expect(read.stdout).toBe(`${lines.join("\n")}\n`);
});

test("text streams hold lines, byte streams what came", async () => {
  await forebay(["append", "--create", "--content-type", "text/plain", "text", "one", "two"]);
  await forebay(["append", "text"], "three\nfour");
  expect((await forebay(["read", "text"])).stdout).toBe("one\ntwo\nthree\nfour\n");
  expect((await forebay(["tail", "-n", "3", "text"])).stdout).toBe("two\nthree\nfour\n");
  const type = "application/octet-stream";
  await forebay(["append", "--create", "--content-type", type, "bytes", "-"], "raw\nbytes");
  expect((await forebay(["read", "bytes"])).stdout).toBe("raw\nbytes");
  expect(JSON.parse((await forebay(["read", "bytes", "--json"])).stdout)).toMatchObject({
    stream: "bytes",
    contentType: type,
    upToDate: true,
    closed: false,
    base64: Buffer.from("raw\nbytes").toString("base64"),
  });
});

test("read --json keeps the records' own text", async () => {
  await forebay(["append", "--create", "json", "1.0", '{"b":1}']);
  const { stdout } = await forebay(["read", "json", "--json"]);
  expect(stdout).toContain('"records":[1.0,{"b":1}]}');
  expect(JSON.parse(stdout)).toMatchObject({ stream: "json", upToDate: true });
});

test("tail shows the last records, and with -f goes on until the stream is closed", async () => {
  await forebay(["append", "--create", "tail", "1", "2", "3"]);
  expect((await forebay(["tail", "-n", "2", "tail"])).stdout).toBe("2\n3\n");
  const following = forebay(["tail", "-f", "-n", "1", "tail"]);
  const fromNow = forebay(["tail", "-f", "-n", "0", "tail"]);
  // Beyond the first long-poll of each.
  await new Promise((resolve) => {
    setTimeout(resolve, 700);
  });
  await forebay(["append", "tail", "4", "5"]);
  const auth = { authorization: "Bearer sesame", "stream-closed": "true" };
  await fetch(`${origin.url}/v1/stream/tail`, { method: "POST", headers: auth });
  expect(await following).toEqual({ code: 0, stdout: "3\n4\n5\n", stderr: "" });
  expect(await fromNow).toEqual({ code: 0, stdout: "4\n5\n", stderr: "" });
});

test("tail -f goes on after the origin was killed and started again", async () => {
  let other = await startOrigin();
  const at = (args: readonly string[]) => runCli([...args, "--url", other.url]);
  await at(["append", "--create", "s", "1"]);
  const following = at(["tail", "-f", "s"]);
  await at(["append", "s", "2"]);
  await other.crash();
  other = await startOrigin({ dataDir: other.dataDir, port: other.port });
  await at(["append", "s", "3"]);
  await fetch(`${other.url}/v1/stream/s`, { method: "POST", headers: { "stream-closed": "true" } });
  const { code, stdout, stderr } = await following;
  expect([code, stdout]).toEqual([0, "1\n2\n3\n"]);
  expect(stderr).toMatch(/^waiting: http\S+ does not answer .*\nconnected again\n$/);
  await other.stop();
});

test("ls lists in order of paths, by prefix, and as JSON lines", async () => {
  for (const name of ["ls/b", "ls/a", "lsx"]) {
    await forebay(["append", "--create", name, "1"]);
  }
  const { code, stdout } = await forebay(["ls", "ls/"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^[0-9a-f]{16}_[0-9a-f]{16} {2}application\/json {2}ls\/a\n[0-9a-f]{16}_[0-9a-f]{16} {2}application\/json {2}ls\/b\n$/,
  );
  const lines = (await forebay(["ls", "ls", "--json"])).stdout.trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line).path)).toEqual(["ls/a", "ls/b", "lsx"]);
  expect(JSON.parse(lines[0] ?? "")).toEqual({
    path: "ls/a",
    contentType: "application/json",
    tail: expect.stringMatching(/^[0-9a-f]{16}_[0-9a-f]{16}$/),
    closed: false,
    ttlSeconds: null,
    expiresAt: null,
  });
});

test.each([
  [["append", "missing", "1"], "stream_not_found"],
  [["read", "missing"], "stream_not_found"],
  [["append", "--create", "bad", "1", "{oops"], "bad_json"],
  [["append", "--create", "bad", "-"], "empty_body"],
  [["read", "json", "--offset", "nonsense"], "bad_offset"],
  [["append", "json", "--content-type", "text/plain", "x"], "content_type_mismatch"],
])("%j ends with %s", async (args, code) => {
  const ran = await forebay(args);
  expect([ran.code, ran.stdout]).toEqual([1, ""]);
  expect(ran.stderr).toMatch(new RegExp(`^error ${code}: `));
});

test.each([["wrong"], [null]])("a write with the key %j is refused", async (key) => {
  const ran = await runCli(["append", "json", "1", "--url", origin.url], {
    env: key === null ? {} : { FOREBAY_KEY: key },
  });
  expect(ran).toEqual({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^error unauthorized: /),
  });
});
