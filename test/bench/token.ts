/**
 * Tokens: appends of 16 bytes, one at a time, on a server that does nothing else. Against what they cannot be faster
 * than, a bare commit and an HTTP round trip to a bare echo, and against the npm reference server. Ours twice (A/A).
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { compileClient } from "./client.ts";
import { cpuMicros } from "./cpu.ts";
import { buildDir } from "./place.ts";
import { createStream, interleaved, settle, warmUp, type Samples, type Turn } from "./rounds.ts";
import { clientCore, startOurs, startServer, type Server } from "./server.ts";
import { pairedRatio, quartiles, rounded } from "./statistics.ts";
import { wrk } from "./wrk.ts";

const seconds = 1;

interface Sample {
  readonly perSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly serverCpuUs: number;
}

async function tokens(server: Server, url: string): Promise<Sample> {
  const before = cpuMicros(server.pid);
  const options = { connections: 1, seconds, script: "append.lua", argument: "token" };
  const result = await wrk({ url, ...options });
  return { ...result, serverCpuUs: (cpuMicros(server.pid) - before) / result.requests };
}

const appends = (server: Server): Turn<Sample> => ({
  name: server.name,
  measure: async (round) => tokens(server, await createStream(server, `token-${round}`)),
});

function commits(dir: string): Turn<Sample> {
  const program = compileClient("commits");
  const measure = async (): Promise<Sample> => {
    const args = ["-c", clientCore, program, join(dir, "commits"), String(seconds)];
    const result = JSON.parse(execFileSync("taskset", args, { encoding: "utf8" })) as Sample;
    return { ...result, serverCpuUs: 0 };
  };
  return { name: "commit", measure };
}

const column = (samples: Samples<Sample>, name: string, key: keyof Sample): number[] =>
  (samples.get(name) ?? []).map((sample) => sample[key]);

function printTable(samples: Samples<Sample>): void {
  console.log("side      tokens/s    p50 µs  [q1 … q3]         p99 µs  server CPU µs");
  for (const name of samples.keys()) {
    const p50 = quartiles(column(samples, name, "p50Us"));
    const spread = `[${p50.q1.toFixed(0)} … ${p50.q3.toFixed(0)}]`;
    const cell = (key: keyof Sample, width: number): string =>
      quartiles(column(samples, name, key))
        .median.toFixed(0)
        .padStart(width);
    console.log(
      `${name.padEnd(8)}  ${cell("perSecond", 8)}  ${cell("p50Us", 8)}  ${spread.padEnd(16)}  ${cell("p99Us", 7)}  ${cell("serverCpuUs", 13)}`,
    );
  }
}

function printSummary(samples: Samples<Sample>): void {
  const p50 = (name: string): number[] => column(samples, name, "p50Us");
  const trips = p50("echo");
  const floor = p50("commit").map((commit, round) => commit + (trips[round] ?? Number.NaN));
  const median = (values: readonly number[]): number => rounded(quartiles(values).median);
  const ratios = {
    tokenOverFloor: rounded(pairedRatio(p50("ours"), floor).median),
    tokenOverMemory: rounded(pairedRatio(p50("ours"), p50("memory")).median),
    tokenOverFile: rounded(pairedRatio(p50("ours"), p50("file")).median),
    aa: rounded(pairedRatio(p50("ours"), p50("ours2")).median),
  };
  const counters = {
    p50Us: median(p50("ours")),
    commitUs: median(p50("commit")),
    roundTripUs: median(p50("echo")),
    cpuUsPerToken: median(column(samples, "ours", "serverCpuUs")),
    cpuUsPerTokenMemory: median(column(samples, "memory", "serverCpuUs")),
  };
  console.log(JSON.stringify({ bench: "token", ratios, counters }));
}

export async function benchToken(): Promise<void> {
  const dir = mkdtempSync(join(buildDir(), "bench-token-"));
  const servers: Server[] = [];
  try {
    for (const name of ["ours", "ours2"]) {
      servers.push(await startOurs(name, dir));
    }
    servers.push(await startServer("memory", "servers/reference.ts"));
    servers.push(await startServer("file", "servers/reference.ts", [join(dir, "file")]));
    await warmUp(servers);
    const turns = servers.map(appends);
    const echo = await startServer("echo", "servers/echo.ts");
    servers.push(echo);
    turns.push({ name: "echo", measure: () => tokens(echo, `${echo.url}/`) });
    turns.push(commits(dir));
    const samples = await interleaved([turns], () => settle(servers));
    printTable(samples);
    printSummary(samples);
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
    rmSync(dir, { recursive: true, force: true });
  }
}
