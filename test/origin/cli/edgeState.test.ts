import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openEdgeState } from "../../../origin/cli/edgeState.ts";
import { ForebayError } from "../../../shared/errors/mod.ts";

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "forebay-edge-"));
});
afterEach(() => rmSync(dataDir, { recursive: true }));

test("the key lies in a file of mode 0600, also over one left with another mode, and goes with the edge", () => {
  const first = openEdgeState(dataDir, { FOREBAY_KEY: "old" });
  chmodSync(first.bindingsFile, 0o644);
  const state = openEdgeState(dataDir, { FOREBAY_KEY: "k#$1`x", REGION: "local" });
  expect(statSync(state.bindingsFile).mode & 0o777).toBe(0o600);
  expect(readFileSync(state.bindingsFile, "utf8")).toBe("FOREBAY_KEY='k#$1`x'\nREGION='local'\n");
  state.clear();
  expect(existsSync(state.bindingsFile)).toBe(false);
});

test("a data path that is a file", () => {
  const path = join(dataDir, "file");
  writeFileSync(path, "");
  expect(() => openEdgeState(path, {})).toThrow(
    expect.objectContaining({ code: "data_unwritable" }),
  );
});

test.runIf(process.platform === "linux")(
  "a workerd that survived an earlier start is named, and only while it lives",
  async () => {
    // Any long-lived program under that name: /proc tells only names.
    const program = join(dataDir, "workerd");
    copyFileSync("/bin/sleep", program);
    chmodSync(program, 0o755);
    const child = spawn(program, ["60"], { detached: true, stdio: "ignore" });
    const { pid } = child;
    if (pid === undefined) {
      throw new Error("no pid");
    }
    openEdgeState(dataDir, {}).remember(pid);
    let caught: unknown;
    try {
      openEdgeState(dataDir, {});
    } catch (error) {
      caught = error;
    }
    expect(caught).toBeInstanceOf(ForebayError);
    expect(caught).toMatchObject({
      code: "data_locked",
      message: `an edge of an earlier start still runs on ${join(dataDir, "edge")} (workerd, process ${pid}); end it with: kill -- -${pid}`,
    });
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(() => openEdgeState(dataDir, {})).not.toThrow();
  },
);
