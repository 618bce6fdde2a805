import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { cleanEnvironment, startCli, startOrigin } from "./harness.ts";

const cli = fileURLToPath(new URL("../../origin/cli/main.ts", import.meta.url));
const free = ["--port", "0", "--edge-port", "0"];

let data: string;
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), "forebay-start-"));
});
afterEach(() => rmSync(data, { recursive: true, force: true }));

describe("forebay start", () => {
  test("runs both, keeps the key out of sight, ends both on SIGTERM, and finds its data again", async () => {
    const key = "not-for-the-process-list";
    const auth = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const first = await startCli([...free, "--data", data], { FOREBAY_KEY: key });
    const { origin, edge, edgePid } = first.line;
    const group = processesOf(edgePid);
    expect(group.map(({ name }) => name)).toContain("workerd");
    for (const { pid } of [...group, { pid: first.pid }]) {
      expect(readFileSync(`/proc/${pid}/cmdline`, "utf8")).not.toContain(key);
    }
    const made = await fetch(`${edge}/v1/stream/s`, {
      method: "PUT",
      headers: auth,
      body: "[1,2]",
    });
    expect(made.status).toBe(201);
    expect(await (await fetch(`${origin}/v1/stream/s`, { headers: auth })).json()).toEqual([1, 2]);

    first.child.kill("SIGTERM");
    expect(await first.exited).toBe(0);
    expect(processesOf(edgePid)).toEqual([]);
    expect(first.log()).toContain("SIGTERM: stopping");
    expect(first.log()).not.toContain(key);
    expect(filesHolding(data, key)).toEqual([]);
    await expect(fetch(`${edge}/livez`)).rejects.toThrow("fetch failed");
    await expect(fetch(`${origin}/livez`)).rejects.toThrow("fetch failed");

    const again = await startOrigin({ dataDir: data, key });
    const read = await fetch(`${again.url}/v1/stream/s`, { headers: auth });
    expect(await read.json()).toEqual([1, 2]);
    expect(await again.stop()).toBe(0);
  });

  test("prints commands that work when they are pasted", async () => {
    const child = spawn(process.execPath, [cli, "start", ...free, "--data", data], {
      stdio: ["ignore", "pipe", "inherit"],
      env: cleanEnvironment(),
    });
    let banner = "";
    for await (const chunk of child.stdout) {
      banner += String(chunk);
      if (banner.includes("Ctrl-C")) {
        break;
      }
    }
    expect(banner).toMatch(/^Forebay is up\.\n\n {2}origin {2}http:\S+\n {2}edge {4}http:\S+\n/);
    const commands = banner.split("\n").filter((line) => line.startsWith("  curl "));
    expect(commands).toHaveLength(2);
    const answers = commands.map((command) =>
      spawnSync("sh", ["-c", `${command.trim()} -sS --fail`], { encoding: "utf8" }),
    );
    expect(answers.map(({ status, stderr }) => [status, stderr])).toEqual([
      [0, ""],
      [0, ""],
    ]);
    expect(answers[1]?.stdout).toBe('[{"hello":"water"}]');
    child.kill("SIGINT");
    expect((await once(child, "exit"))[0]).toBe(0);
  });

  test("killed with SIGKILL it takes its edge along", async () => {
    const started = await startCli([...free, "--data", data]);
    started.child.kill("SIGKILL");
    await started.exited;
    await until(() => processesOf(started.line.edgePid).length === 0);
    expect(processesOf(started.line.edgePid)).toEqual([]);
  });

  test("ends with exit code 70 when the edge dies, and the origin is gone too", async () => {
    const started = await startCli([...free, "--data", data]);
    process.kill(started.line.edgePid ?? 0, "SIGKILL");
    expect(await started.exited).toBe(70);
    expect(JSON.parse(started.log().trimEnd().split("\n").at(-1) ?? "")).toMatchObject({
      code: "edge_failed",
      message: expect.stringMatching(/^the edge ended by itself: SIGKILL/),
    });
    expect(processesOf(started.line.edgePid)).toEqual([]);
    await expect(fetch(`${started.line.origin}/livez`)).rejects.toThrow("fetch failed");
  });

  test("a second Ctrl-C ends it at once, whatever is unfinished", async () => {
    const started = await startCli([...free, "--data", data]);
    const { edgePid } = started.line;
    // An edge that does not react would be given five seconds.
    process.kill(edgePid ?? 0, "SIGSTOP");
    started.child.kill("SIGINT");
    await until(() => started.log().includes("again to end at once"));
    // npm passes the terminal's signal on a second time; that is no second wish.
    started.child.kill("SIGINT");
    await new Promise((resolve) => {
      setTimeout(resolve, 1200);
    });
    expect(started.child.exitCode).toBeNull();
    started.child.kill("SIGINT");
    expect(await started.exited).toBe(130);
    await until(() => processesOf(edgePid).length === 0);
  });
});

describe("refuses to start", () => {
  test("a second time on the same data: 75", async () => {
    const first = await startOrigin({ dataDir: data });
    const { code, stderr } = await failing(["--no-edge", "--port", "0", "--data", data]);
    expect([code, stderr]).toEqual([
      75,
      expect.stringMatching(/^error data_locked: .*\n {2}stop the other/s),
    ]);
    expect(stderr).toContain(data);
    expect((await fetch(`${first.url}/livez`)).status).toBe(200);
    expect(await first.stop()).toBe(0);
  });

  test.each(["--port", "--edge-port"])(
    "F18 when %s is taken: 69, and no data is touched",
    async (flag) => {
      const untouched = join(data, "untouched");
      const server = createServer();
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      const address = server.address();
      const port = address !== null && typeof address === "object" ? address.port : 0;
      const { code, stderr } = await failing([...free, flag, String(port), "--data", untouched]);
      expect([code, stderr]).toEqual([
        69,
        expect.stringMatching(/^error port_taken: .*\n {2}stop what/s),
      ]);
      expect(stderr).toContain(String(port));
      expect(stderr).not.toMatch(/^ {4}at /m);
      expect(existsSync(untouched)).toBe(false);
      server.close();
    },
  );

  test("when the data directory cannot be made: 73", async () => {
    const path = join(data, "file");
    writeFileSync(path, "");
    const { code, stderr } = await failing(["--no-edge", "--port", "0", "--data", join(path, "x")]);
    expect([code, stderr]).toEqual([73, expect.stringMatching(/^error data_unwritable: /)]);
    expect(stderr).toContain(path);
    expect(stderr).not.toMatch(/^ {4}at /m);
  });
});

async function failing(flags: readonly string[]): Promise<{ code: number; stderr: string }> {
  const child = spawn(process.execPath, [cli, "start", ...flags], {
    stdio: ["ignore", "ignore", "pipe"],
    env: cleanEnvironment(),
  });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const [code] = await once(child, "close");
  return { code, stderr };
}

/** Living processes of a process group (Linux). */
function processesOf(group: number | null): { pid: number; name: string }[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((entry) => {
      let stat = "";
      try {
        stat = readFileSync(`/proc/${entry}/stat`, "utf8");
      } catch {
        // It ended meanwhile.
      }
      const m = /^(\d+) \((.*)\) (\S) \d+ (\d+) /s.exec(stat);
      return m !== null && m[3] !== "Z" && Number(m[4]) === group
        ? [{ pid: Number(m[1]), name: m[2] ?? "" }]
        : [];
    });
}

function filesHolding(dir: string, text: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => existsSync(path) && readFileSync(path).includes(text));
}

async function until(holds: () => boolean): Promise<void> {
  const deadline = Date.now() + 8000;
  while (!holds()) {
    expect(Date.now(), "it did not come true in 8 s").toBeLessThan(deadline);
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
  }
}
