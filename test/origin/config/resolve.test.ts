import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { resolveSettings, settingNames, table, type Inputs } from "../../../origin/config/mod.ts";
import { ForebayError } from "../../../shared/errors/mod.ts";

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), "forebay-config-"));
});
afterEach(() => rmSync(cwd, { recursive: true }));

function resolve(inputs: Partial<Inputs> = {}) {
  return resolveSettings({ flags: {}, env: {}, file: null, cwd, ...inputs });
}

function refusal(inputs: Partial<Inputs>): string {
  try {
    resolve(inputs);
  } catch (error) {
    expect(error).toBeInstanceOf(ForebayError);
    expect((error as ForebayError).code).toBe("config_invalid");
    return (error as ForebayError).message;
  }
  throw new Error("it was accepted");
}

describe("precedence", () => {
  test("without anything every value is its default", () => {
    const { values, sources, file } = resolve();
    expect(file).toBeNull();
    expect(values.port).toBe(4437);
    expect(values.host).toBe("127.0.0.1");
    expect(values.key).toBeNull();
    expect(settingNames.filter((name) => sources[name].kind !== "default")).toEqual([]);
  });

  test("flags beat the environment, the environment beats the file, the file beats defaults", () => {
    writeFileSync(
      join(cwd, "forebay.toml"),
      "port = 1\nedgePort = 1\nlongPollMs = 1000\nedge = false\n",
    );
    const { values, sources } = resolve({
      env: { FOREBAY_PORT: "2", FOREBAY_EDGE_PORT: "2" },
      flags: { port: "3" },
    });
    expect([values.port, values.edgePort, values.longPollMs, values.edge]).toEqual([
      3,
      2,
      1000,
      false,
    ]);
    expect(sources.port).toEqual({ kind: "flag", flag: "--port" });
    expect(sources.edgePort).toEqual({ kind: "env", variable: "FOREBAY_EDGE_PORT" });
    expect(sources.longPollMs).toEqual({ kind: "file", path: join(cwd, "forebay.toml") });
    expect(sources.maxConnections).toEqual({ kind: "default" });
  });

  test("an empty variable counts as not set", () => {
    expect(resolve({ env: { FOREBAY_PORT: "", FOREBAY_KEY: "" } }).sources.port.kind).toBe(
      "default",
    );
  });

  test("a path in the file is beside the file, one in a flag below the working directory", () => {
    const path = join(cwd, "other.toml");
    writeFileSync(path, 'data = "here"\n');
    expect(resolve({ file: path, cwd: "/" }).values.data).toBe(join(cwd, "here"));
    expect(resolve({ file: path, cwd: "/", flags: { data: "there" } }).values.data).toBe("there");
  });
});

describe("values", () => {
  test.each([
    ["64MiB", 67_108_864],
    ["64 mib", 67_108_864],
    ["67108864", 67_108_864],
    ["0.5GiB", 536_870_912],
    ["100MB", 100_000_000],
  ])("the size %s is %i bytes", (text, bytes) => {
    expect(resolve({ flags: { segmentBytes: text } }).values.segmentBytes).toBe(bytes);
  });

  test.each([
    ["500ms", 500],
    ["30s", 30_000],
    ["1.5s", 1500],
    ["2m", 120_000],
    ["500", 500],
  ])("the time %s is %i ms", (text, ms) => {
    expect(resolve({ env: { FOREBAY_LONG_POLL_MS: text } }).values.longPollMs).toBe(ms);
  });

  test("lists are split at commas, or are TOML arrays", () => {
    const origins = ["https://a.example", "http://127.0.0.1:5173"];
    expect(
      resolve({ flags: { allowedOrigins: origins.join(", ") } }).values.allowedOrigins,
    ).toEqual(origins);
    writeFileSync(join(cwd, "forebay.toml"), `allowedOrigins = ${JSON.stringify(origins)}`);
    expect(resolve().values.allowedOrigins).toEqual(origins);
  });

  test("sizes and times of the file may be numbers or text", () => {
    writeFileSync(join(cwd, "forebay.toml"), 'segmentBytes = "32MiB"\nlongPollMs = 700');
    const { values } = resolve();
    expect([values.segmentBytes, values.longPollMs]).toEqual([33_554_432, 700]);
  });
});

test("an origin is exact, as browsers write it", () => {
  for (const text of ["*", "https://app.example/", "https://App.example", "app.example"]) {
    expect(() => resolve({ flags: { allowedOrigins: text } }), text).toThrow("exact web origins");
  }
});

describe("refusals name the value, where it came from and what is accepted", () => {
  test("a word where a number belongs", () => {
    expect(refusal({ env: { FOREBAY_PORT: "http" } })).toBe(
      'port = "http" (from FOREBAY_PORT) is not accepted; give a whole number from 0 to 65535',
    );
  });

  test("a number out of range", () => {
    expect(refusal({ flags: { port: "65536" } })).toBe(
      "port = 65536 (from --port) is not accepted; give a whole number from 0 to 65535",
    );
  });

  test("a wrong type in the file, text that looks like a number included", () => {
    const path = join(cwd, "forebay.toml");
    writeFileSync(path, 'port = "4437"');
    expect(refusal({})).toBe(
      `port = "4437" (from ${path}) is not accepted; give a whole number from 0 to 65535`,
    );
    writeFileSync(path, "edge = 1");
    expect(refusal({})).toBe(`edge = 1 (from ${path}) is not accepted; give true or false`);
  });

  test("an unknown unit", () => {
    expect(refusal({ flags: { segmentBytes: "64 pages" } })).toMatch(
      /^segmentBytes = "64 pages" \(from --segment-bytes\) is not accepted; give bytes or a size such as 64MiB/,
    );
  });

  test("a secret is never shown", () => {
    const message = refusal({ env: { FOREBAY_KEY: "two words" } });
    expect(message).toMatch(/^key \(from FOREBAY_KEY\) is not accepted/);
    expect(message).not.toContain("two words");
  });

  test("an unknown key of the file, with the nearest known one", () => {
    const path = join(cwd, "forebay.toml");
    writeFileSync(path, "prot = 1");
    expect(refusal({})).toBe(`"prot" in ${path} is not a setting; did you mean port?`);
    writeFileSync(path, "long_poll = 1");
    expect(refusal({})).toBe(`"long_poll" in ${path} is not a setting; did you mean longPollMs?`);
    writeFileSync(path, "[server]\nport = 1");
    expect(refusal({})).toBe(`"server" in ${path} is not a setting`);
  });

  test("a key that every object has is still unknown", () => {
    writeFileSync(join(cwd, "forebay.toml"), "constructor = 1");
    expect(refusal({})).toContain('"constructor" in ');
  });

  test("an unknown variable of our prefix", () => {
    expect(refusal({ env: { FOREBAY_EDGE_PROT: "1" } })).toBe(
      "the environment variable FOREBAY_EDGE_PROT is not a setting; did you mean FOREBAY_EDGE_PORT?",
    );
    expect(resolve({ env: { FOREBAY_SERVICE_HOST: "10.0.0.1", PORT: "x" } }).values.port).toBe(
      4437,
    );
  });

  test("what Kubernetes sets for a Service of this name", () => {
    expect(refusal({ env: { FOREBAY_PORT: "tcp://10.0.0.1:4437" } })).toContain(
      "enableServiceLinks: false",
    );
  });

  test("a file that is asked for and missing, a folder, and one that is not TOML", () => {
    expect(refusal({ file: "nowhere.toml" })).toContain(join(cwd, "nowhere.toml"));
    expect(refusal({ file: "." })).toContain("cannot be read");
    writeFileSync(join(cwd, "forebay.toml"), "port = 1\nhost = \n");
    expect(refusal({})).toMatch(new RegExp(`^${join(cwd, "forebay.toml")}:2:\\d+ is not TOML: `));
  });
});

test("variables and flags follow from the names, but for the short --data", () => {
  for (const name of settingNames) {
    const words = name.replaceAll(/[A-Z]/g, (c) => `-${c.toLowerCase()}`);
    expect(table[name].flag).toBe(`--${words}`);
    expect(table[name].variable).toBe(`FOREBAY_${words.replaceAll("-", "_").toUpperCase()}`);
  }
});

test("every default passes its own check", () => {
  for (const name of settingNames) {
    const { schema, fallback } = table[name];
    expect(fallback === null || schema.safeParse(fallback).success, name).toBe(true);
  }
});
