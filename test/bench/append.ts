/**
 * Durable 256-byte appends at 1, 8, 64 and 256 connections against the npm reference server, in memory and
 * file-backed. All sides are up at once; every round visits each of them, ours twice (A/A).
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cpuMicros } from "./cpu.ts";
import { buildDir } from "./place.ts";
import { startFlags, startServer, type Server } from "./server.ts";
import { pairedRatio, quartiles, rounded } from "./statistics.ts";
import { wrk, type WrkResult } from "./wrk.ts";

const rounds = 9;
const seconds = 1;
const connectionCounts = [1, 8, 64, 256] as const;
const idleSeconds = 10;

interface Sample extends WrkResult {
  /** CPU of the server and of the client, per request, µs. */
  readonly serverCpuUs: number;
}

/** Samples by side, then by number of connections, in the order of the rounds. */
type Samples = Map<string, Map<number, Sample[]>>;

async function createStream(server: Server, name: string): Promise<string> {
  const url = `${server.url}/v1/stream/${name}`;
  const answer = await fetch(url, {
    method: "PUT",
    headers: { "content-type": "application/octet-stream" },
  });
  if (answer.status !== 201) {
    throw new Error(`${server.name} answered ${answer.status} to PUT ${url}`);
  }
  await answer.arrayBuffer();
  return url;
}

/** Waits until no side works on what the last run left behind (garbage, dirty pages): all share a core and a disk. */
async function settle(servers: readonly Server[]): Promise<void> {
  execFileSync("sync");
  const busy = (): number => servers.reduce((sum, server) => sum + cpuMicros(server.pid), 0);
  for (let tries = 0; tries < 20; tries++) {
    const before = busy();
    await new Promise((resolve) => setTimeout(resolve, 100));
    if (busy() - before < 2000) {
      return;
    }
  }
}

async function measure(server: Server, url: string, connections: number): Promise<Sample> {
  const before = cpuMicros(server.pid);
  const result = await wrk({ url, connections, seconds, script: "append.lua" });
  return { ...result, serverCpuUs: (cpuMicros(server.pid) - before) / result.requests };
}

async function runRounds(servers: readonly Server[]): Promise<Samples> {
  const samples: Samples = new Map(servers.map((s) => [s.name, new Map()]));
  for (let round = 0; round < rounds; round++) {
    for (const connections of connectionCounts) {
      // rotate the order and turn it round, so that no side always runs after the same other
      const order = round % 2 === 0 ? servers : servers.toReversed();
      for (let i = 0; i < order.length; i++) {
        const server = order[(i + round) % order.length];
        if (server !== undefined) {
          const url = await createStream(server, `bench-${connections}-${round}`);
          await settle(servers);
          const ofSide = samples.get(server.name);
          const list = ofSide?.get(connections) ?? [];
          list.push(await measure(server, url, connections));
          ofSide?.set(connections, list);
        }
      }
    }
    process.stderr.write(`round ${round + 1} of ${rounds}\n`);
  }
  return samples;
}

function column(samples: Samples, side: string, connections: number, key: keyof Sample): number[] {
  return (samples.get(side)?.get(connections) ?? []).map((sample) => sample[key]);
}

function printTable(samples: Samples): void {
  console.log(
    "connections  side      appends/s  [q1 … q3]          p50 µs   p99 µs   server CPU µs",
  );
  for (const connections of connectionCounts) {
    for (const side of samples.keys()) {
      const rate = quartiles(column(samples, side, connections, "perSecond"));
      const cell = (key: keyof Sample, width: number): string =>
        quartiles(column(samples, side, connections, key))
          .median.toFixed(key === "serverCpuUs" ? 1 : 0)
          .padStart(width);
      const spread = `[${rate.q1.toFixed(0)} … ${rate.q3.toFixed(0)}]`;
      console.log(
        `${String(connections).padStart(11)}  ${side.padEnd(8)}  ${rate.median.toFixed(0).padStart(9)}  ${spread.padEnd(17)}  ${cell("p50Us", 7)}  ${cell("p99Us", 7)}  ${cell("serverCpuUs", 14)}`,
      );
    }
  }
}

async function idleCpuPercent(server: Server): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const before = cpuMicros(server.pid);
  await new Promise((resolve) => setTimeout(resolve, idleSeconds * 1000));
  return ((cpuMicros(server.pid) - before) / (idleSeconds * 1e6)) * 100;
}

async function echoRate(): Promise<number> {
  const echo = await startServer("echo", "servers/echo.ts");
  try {
    const rates: number[] = [];
    for (let i = 0; i < 3; i++) {
      rates.push(
        (await wrk({ url: `${echo.url}/`, connections: 64, seconds, script: "append.lua" }))
          .perSecond,
      );
    }
    return quartiles(rates).median;
  } finally {
    await echo.stop();
  }
}

export async function benchAppend(): Promise<void> {
  const dir = mkdtempSync(join(buildDir(), "bench-append-"));
  const servers: Server[] = [];
  try {
    for (const name of ["ours", "ours2"]) {
      const flags = ["start", "--no-edge", "--json", "--port", "0", "--data", join(dir, name)];
      servers.push(await startServer(name, "../../origin/cli/main.ts", flags, startFlags()));
    }
    servers.push(await startServer("memory", "servers/reference.ts"));
    servers.push(await startServer("file", "servers/reference.ts", [join(dir, "file")]));
    const echo = await echoRate();
    const samples = await runRounds(servers);
    printTable(samples);
    const rate = (side: string): number[] => column(samples, side, 64, "perSecond");
    const cpu = (side: string): number =>
      quartiles(column(samples, side, 64, "serverCpuUs")).median;
    const fastest = Math.max(
      ...["ours", "memory", "file"].map((side) => quartiles(rate(side)).median),
    );
    console.log(
      `bare echo, 64 connections: ${echo.toFixed(0)}/s, ${(echo / fastest).toFixed(2)}× the fastest side`,
    );
    const [ours] = servers;
    const ratios = {
      memory64: rounded(pairedRatio(rate("ours"), rate("memory")).median),
      file64: rounded(pairedRatio(rate("ours"), rate("file")).median),
      aa64: rounded(pairedRatio(rate("ours"), rate("ours2")).median),
    };
    const counters = {
      cpuUs64: rounded(cpu("ours")),
      cpuUsMemory64: rounded(cpu("memory")),
      cpuUsFile64: rounded(cpu("file")),
      aa64: ratios.aa64,
      idleCpuPercent: ours === undefined ? Number.NaN : rounded(await idleCpuPercent(ours)),
      echoOverFastest: rounded(echo / fastest),
    };
    console.log(JSON.stringify({ bench: "append", ratios, counters }));
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
    rmSync(dir, { recursive: true, force: true });
  }
}
