import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";
import { count } from "../.scripts/test.mjs";
import { root } from "./tidy/tree.ts";

const script = (name: string): string => join(root, ".scripts", name);

const runScript = (name: string, ...args: string[]) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script(name), ...args], {
    encoding: "utf8",
  });
  return { status, stdout, stderr };
};

const ofFile = (status: string, ...tests: string[]) => ({
  status,
  assertionResults: tests.map((each) => ({ status: each })),
});

test("a run passes only when a test passed, none failed and nothing else did", () => {
  const good = { success: true, testResults: [ofFile("passed", "passed", "passed", "skipped")] };
  expect(count(good, 0)).toEqual({ passed: 2, failed: 0, wholeRunFailed: false });

  const failing = { success: false, testResults: [ofFile("failed", "passed", "failed")] };
  expect(count(failing, 1)).toEqual({ passed: 1, failed: 1, wholeRunFailed: false });

  const notLoaded = { success: false, testResults: [ofFile("failed"), ofFile("passed", "passed")] };
  expect(count(notLoaded, 1)).toEqual({ passed: 1, failed: 1, wholeRunFailed: false });

  // An unhandled rejection: every test passed, vitest ended with 1.
  expect(count(good, 1)).toEqual({ passed: 2, failed: 1, wholeRunFailed: true });

  const nothing = { success: true, testResults: [] };
  expect(count(nothing, 0)).toEqual({ passed: 0, failed: 1, wholeRunFailed: true });
});

test.each(["setup.mjs", "test.mjs", "soak.mjs", "check.mjs"])(
  "%s --help tells the usage",
  (name) => {
    const { status, stdout, stderr } = runScript(name, "--help");
    expect(stdout).toMatch(/^Usage: /);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  },
);

test.each([
  ["setup.mjs", ["--tset"], 'setup: unknown argument "--tset"'],
  ["check.mjs", ["lnit"], 'check: unknown step "lnit"'],
  ["soak.mjs", [], "soak: needs one name, got 0"],
  ["soak.mjs", ["crsh"], 'soak: unknown name "crsh"'],
  ["soak.mjs", ["crash", "--minutes", "0"], "soak: --minutes needs a whole number from 1 to 1440"],
  ["soak.mjs", ["crash", "--seed"], "soak: --seed needs a whole number from 0 to 4294967295"],
])("%s %j is refused with the usage", (name, args, problem) => {
  const { status, stderr } = runScript(name, ...args);
  expect(stderr).toContain(problem);
  expect(stderr).toContain("Usage: ");
  expect(status).toBe(64);
});

test("setup is quiet when there is nothing to do", () => {
  expect(runScript("setup.mjs")).toEqual({ status: 0, stdout: "", stderr: "" });
});

/** Holds the lock until its stdin ends or it is killed. */
const holder = `
  import { lock } from ${JSON.stringify(script("lock.mjs"))};
  await lock();
  console.log("locked");
  process.stdin.resume();
`;

function startHolder() {
  const child = spawn(process.execPath, ["--input-type=module", "-e", holder]);
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const says = async (line: string): Promise<void> => {
    while (!output.includes(line)) {
      await once(child.stdout, "data");
    }
  };
  return { child, says, output: () => output };
}

test.runIf(process.platform === "linux")(
  "a second setup waits for the first, and a killed one leaves no lock",
  async () => {
    const first = startHolder();
    await first.says("locked");
    const second = startHolder();
    await second.says("waiting");
    expect(second.output()).not.toContain("locked");
    first.child.kill("SIGKILL");
    await second.says("locked");
    const ended = once(second.child, "close");
    second.child.stdin.end();
    expect(await ended).toEqual([0, null]);
  },
);
