import { spawn, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** A server process under test, pinned to one core. */
export interface Server {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

export const serverCore = "0";
export const clientCore = "1";

/** The flags that `npm start` gives Node. */
export function startFlags(): string[] {
  const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const { scripts } = JSON.parse(manifest) as { scripts: { start: string } };
  const words = scripts.start.split(" ").slice(1);
  return words.slice(
    0,
    words.findIndex((word) => !word.startsWith("--")),
  );
}

/**
 * Starts `script` (its path from this folder) with Node on the server's core and waits for the line in which it
 * prints its URL: bare, or as `origin` of a JSON object, as `forebay start --json` does.
 */
export async function startServer(
  name: string,
  script: string,
  args: readonly string[] = [],
  nodeFlags: readonly string[] = [],
): Promise<Server> {
  const path = new URL(script, import.meta.url).pathname;
  const command = ["-c", serverCore, process.execPath, ...nodeFlags, path, ...args];
  const child = spawn("taskset", command, { stdio: ["ignore", "pipe", "inherit"] });
  const url = await firstLine(child, name);
  const { pid } = child;
  if (pid === undefined) {
    throw new Error(`${name} has no pid`);
  }
  return { name, url, pid, stop: () => stop(child) };
}

/** An origin without an edge, as `npm start` runs it, its data in `dir` under its name. */
export function startOurs(name: string, dir: string): Promise<Server> {
  const flags = ["start", "--no-edge", "--json", "--port", "0", "--data", join(dir, name)];
  return startServer(name, "../../origin/cli/main.ts", flags, startFlags());
}

async function firstLine(child: ChildProcess, name: string): Promise<string> {
  if (child.stdout === null) {
    throw new Error(`${name} has no stdout`);
  }
  for await (const line of createInterface({ input: child.stdout })) {
    const url = line.startsWith("{") ? String(JSON.parse(line).origin) : line;
    if (url.startsWith("http://")) {
      child.stdout.resume();
      return url;
    }
  }
  throw new Error(`${name} ended before it printed its URL`);
}

function stop(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) {
      resolve();
      return;
    }
    const force = setTimeout(() => child.kill("SIGKILL"), 5000);
    child.once("exit", () => {
      clearTimeout(force);
      resolve();
    });
    child.kill("SIGTERM");
  });
}
