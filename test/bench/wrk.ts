import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { clientCore } from "./server.ts";

const run = promisify(execFile);

export interface WrkOptions {
  readonly url: string;
  readonly connections: number;
  readonly seconds: number;
  /** Lua script under bench/. */
  readonly script: string;
  /** For the script. */
  readonly argument?: string;
}

export interface WrkResult {
  readonly requests: number;
  readonly perSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
}

/**
 * One run of wrk (Debian package `wrk`) on the client's core: one thread, closed loop.
 *
 * @throws Error when any request failed: a rate with errors in it measures nothing
 */
export async function wrk(options: WrkOptions): Promise<WrkResult> {
  const { url, connections, seconds, script, argument } = options;
  const path = new URL(script, import.meta.url).pathname;
  const args = [
    "-c",
    clientCore,
    "wrk",
    "-t1",
    `-c${connections}`,
    `-d${seconds}s`,
    "-s",
    path,
    url,
    ...(argument === undefined ? [] : ["--", argument]),
  ];
  const { stdout } = await run("taskset", args);
  const line = stdout.split("\n").find((text) => text.startsWith("{"));
  if (line === undefined) {
    throw new Error(`wrk printed no summary:\n${stdout}`);
  }
  const summary = JSON.parse(line) as WrkResult & { errors: number };
  if (summary.errors > 0 || summary.requests === 0) {
    throw new Error(`${summary.errors} of ${summary.requests} requests to ${url} failed`);
  }
  return summary;
}
