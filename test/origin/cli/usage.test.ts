import { createServer } from "node:http";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { describe, expect, test } from "vitest";
import { run } from "../../../origin/cli/mod.ts";
import { settingNames, table } from "../../../origin/config/mod.ts";
import { runCli } from "./terminal.ts";

describe("help", () => {
  test.each(["start", "append", "read", "tail", "ls"])("%s shows examples", async (command) => {
    const { code, stdout } = await runCli([command, "--help"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Usage: forebay /);
    expect(stdout).toMatch(/\nExamples:\n {2}\S/);
    expect(stdout).toContain("--json");
  });

  test("start names every flag and variable of its settings", async () => {
    const { stdout } = await runCli(["start", "--help"]);
    for (const name of settingNames.filter((each) => table[each].usedBy !== "client")) {
      expect(stdout).toContain(name === "edge" ? "--no-edge" : table[name].flag);
      expect(stdout.replaceAll(/\s+/g, " ")).toContain(table[name].variable);
    }
  });

  test("the version is the package's", async () => {
    expect((await runCli(["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});

describe("what is not understood", () => {
  test.each([
    [["strat"], "error usage: unknown command 'strat'\n(Did you mean start?)\n"],
    [["start", "--prot", "1"], "error usage: unknown option '--prot'\n(Did you mean --port?)\n"],
    [["append"], "error usage: missing required argument 'stream'\n"],
    [
      ["tail", "-n", "few", "s"],
      "error usage: option '-n, --lines <count>' argument 'few' is invalid. give a whole number.\n",
    ],
  ])("%j", async (args, stderr) => {
    expect(await runCli(args)).toEqual({ code: 1, stdout: "", stderr });
  });

  test("a bad value ends with exit code 78, its source and the way out, and no stack", async () => {
    const { code, stdout, stderr } = await runCli(["start"], { env: { FOREBAY_PORT: "http" } });
    expect([code, stdout]).toEqual([78, ""]);
    expect(stderr).toBe(
      'error config_invalid: port = "http" (from FOREBAY_PORT) is not accepted; give a whole number from 0 to 65535\n' +
        "  `forebay start --help` lists every setting, its variable and its default\n",
    );
  });

  test("with --json the error is one JSON document", async () => {
    const { code, stderr } = await runCli(["start", "--json", "--port", "-1"]);
    expect(code).toBe(78);
    expect(JSON.parse(stderr)).toEqual({
      code: "config_invalid",
      message: 'port = "-1" (from --port) is not accepted; give a whole number from 0 to 65535',
      wayOut: "`forebay start --help` lists every setting, its variable and its default",
    });
  });

  test("a public address without a key", async () => {
    const { code, stderr } = await runCli(["start", "--host", "0.0.0.0"]);
    expect(code).toBe(78);
    expect(stderr).toMatch(/^error key_required: host = "0\.0\.0\.0" \(from --host\)/);
  });
});

describe("config print", () => {
  test("every value with where it came from; a secret is only said to be set", async () => {
    const cwd = mkdtempSync(join(tmpdir(), "forebay-cli-"));
    writeFileSync(join(cwd, "forebay.toml"), 'longPollMs = "2s"\n');
    const args = ["config", "print", "--port", "5000"];
    const world = { cwd, env: { FOREBAY_KEY: "very-secret", FOREBAY_EDGE: "no" } };
    const { code, stdout } = await runCli(args, world);
    expect(code).toBe(0);
    const rows = stdout
      .trimEnd()
      .split("\n")
      .map((line) => line.split(/ {2,}/));
    expect(rows.map(([name]) => name)).toEqual([...settingNames]);
    expect(rows).toContainEqual(["port", "5000", "--port"]);
    expect(rows).toContainEqual(["longPollMs", "2s", join(cwd, "forebay.toml")]);
    expect(rows).toContainEqual(["key", "set", "FOREBAY_KEY"]);
    expect(rows).toContainEqual(["edge", "false", "FOREBAY_EDGE"]);
    expect(rows).toContainEqual(["segmentBytes", "64MiB", "default"]);

    const json = await runCli([...args, "--json"], world);
    expect(json.stdout + stdout).not.toContain("very-secret");
    expect(JSON.parse(json.stdout)).toMatchObject({
      port: { value: 5000, source: "--port" },
      key: { value: "set", source: "FOREBAY_KEY" },
      longPollMs: { value: 2000, source: join(cwd, "forebay.toml") },
      segmentBytes: { value: 67_108_864, source: "default" },
    });
    rmSync(cwd, { recursive: true });
  });
});

describe("a server that is not there, or not ours", () => {
  test("nothing listens", async () => {
    const { code, stderr } = await runCli(["read", "s"], { env: { FOREBAY_URL: await freeUrl() } });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^error origin_unreachable: http:\/\/127\.0\.0\.1:\d+ does not answer \(ECONNREFUSED\)\n {2}start one/,
    );
  });

  test("a write whose connection breaks may have been stored, and is said so", async () => {
    await using server = await answering((request, response) => {
      if (request.method === "HEAD") {
        response.setHeader("content-type", "text/plain").end();
      } else {
        request.socket.destroy();
      }
    });
    const { code, stderr } = await runCli(["append", "s", "x", "--url", server.url]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error outcome_unknown: the connection to \S+ broke/);
  });

  test("another server's answer is shown as it came", async () => {
    await using server = await answering((_request, response) => {
      response.statusCode = 502;
      response.end("<h1>Bad gateway</h1>");
    });
    const { code, stderr } = await runCli(["read", "s", "--url", server.url]);
    expect([code, stderr]).toEqual([
      1,
      "error internal: the answer was 502: <h1>Bad gateway</h1>\n",
    ]);
  });

  test("the key goes along as a bearer token and never into an error", async () => {
    let seen: string | undefined;
    await using server = await answering((request, response) => {
      seen = request.headers.authorization;
      response.statusCode = 401;
      response.end('{"code":"unauthorized","detail":"A valid key is required"}');
    });
    const { stderr } = await runCli(["read", "s", "--url", server.url], {
      env: { FOREBAY_KEY: "sesame" },
    });
    expect(seen).toBe("Bearer sesame");
    expect(stderr).toBe(
      "error unauthorized: A valid key is required\n  set FOREBAY_KEY to the key that the server was started with\n",
    );
  });
});

test("a reader of stdout that goes away ends the command without an error", async () => {
  let offset = 0;
  await using server = await answering((_request, response) => {
    response.setHeader("content-type", "text/plain");
    // Never up to date: without the broken pipe it would go on.
    offset += 1;
    response.setHeader("stream-next-offset", String(offset));
    response.end("more\n");
  });
  let written = 0;
  const stdout = new Writable({
    write(_chunk, _encoding, done): void {
      written += 1;
      done(written < 3 ? null : Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
    },
  });
  let stderr = "";
  const code = await run(["read", "s", "--url", server.url], {
    stdin: Readable.from([]),
    stdout,
    stderr: new Writable({
      write(chunk, _encoding, done): void {
        stderr += String(chunk);
        done();
      },
    }),
    env: {},
    cwd: "/nowhere",
  });
  expect([code, stderr, written]).toEqual([0, "", 3]);
});

async function answering(handler: Parameters<typeof createServer>[1]) {
  const server = createServer(handler);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = address !== null && typeof address === "object" ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose](): Promise<void> {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

async function freeUrl(): Promise<string> {
  const server = await answering(() => {});
  await server[Symbol.asyncDispose]();
  return server.url;
}
