/**
 * Durable 256-byte appends at 1, 8, 64 and 256 connections against the npm reference server, in memory and
 * file-backed; at 64 also without the recogniser, by a Hono route, and mixed with reads. All sides are up at once;
 * every round visits each of them, ours twice (A/A).
 */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cpuMicros } from "./cpu.ts";
import { buildDir } from "./place.ts";
import { createStream, interleaved, settle, warmUp, type Samples, type Turn } from "./rounds.ts";
import { startFlags, startOurs, startServer, type Server } from "./server.ts";
import { pairedRatio, quartiles, rounded } from "./statistics.ts";
import { wrk, type WrkResult } from "./wrk.ts";

const seconds = 1;
const connectionCounts = [1, 8, 64, 256] as const;
const idleSeconds = 10;

interface Sample extends WrkResult {
  /** CPU of the server per request, µs. */
  readonly serverCpuUs: number;
}

/** How a side is asked, by the argument of append.lua. */
type Manner = "plain" | "outside" | "mixed";

function turn(server: Server, name: string, connections: number, manner: Manner): Turn<Sample> {
  const label = `${name} ${connections}`;
  const measure = async (round: number): Promise<Sample> => {
    const url = await createStream(server, `bench-${name}-${connections}-${round}`);
    const before = cpuMicros(server.pid);
    const result = await wrk({ url, connections, seconds, script: "append.lua", argument: manner });
    return { ...result, serverCpuUs: (cpuMicros(server.pid) - before) / result.requests };
  };
  return { name: label, measure };
}

interface Sides {
  readonly ours: Server;
  readonly ours2: Server;
  readonly memory: Server;
  readonly file: Server;
  readonly hono: Server;
}

async function startSides(dir: string): Promise<Sides> {
  return {
    ours: await startOurs("ours", dir),
    ours2: await startOurs("ours2", dir),
    memory: await startServer("memory", "servers/reference.ts"),
    file: await startServer("file", "servers/reference.ts", [join(dir, "file")]),
    hono: await startServer("hono", "servers/hono.ts", [join(dir, "hono")], startFlags()),
  };
}

function groupsOf({ hono, ...compared }: Sides): Turn<Sample>[][] {
  const groups = connectionCounts.map((connections) =>
    Object.values(compared).map((server) => turn(server, server.name, connections, "plain")),
  );
  const { ours, memory } = compared;
  groups.push([
    turn(ours, "recognised", 64, "plain"),
    turn(ours, "http", 64, "outside"),
    turn(hono, "hono", 64, "plain"),
  ]);
  groups.push([turn(ours, "mixed", 64, "mixed"), turn(memory, "memoryMixed", 64, "mixed")]);
  return groups;
}

const column = (samples: Samples<Sample>, name: string, key: keyof Sample): number[] =>
  (samples.get(name) ?? []).map((sample) => sample[key]);

function printTable(samples: Samples<Sample>): void {
  console.log(
    "side, connections   requests/s  [q1 … q3]          p50 µs   p99 µs   server CPU µs  [q1 … q3]",
  );
  for (const name of samples.keys()) {
    const rate = quartiles(column(samples, name, "perSecond"));
    const cpu = quartiles(column(samples, name, "serverCpuUs"));
    const micros = (key: keyof Sample): string =>
      quartiles(column(samples, name, key))
        .median.toFixed(0)
        .padStart(7);
    const spread = `[${rate.q1.toFixed(0)} … ${rate.q3.toFixed(0)}]`;
    console.log(
      `${name.padEnd(18)}  ${rate.median.toFixed(0).padStart(10)}  ${spread.padEnd(17)}  ${micros("p50Us")}  ${micros("p99Us")}  ${cpu.median.toFixed(1).padStart(14)}  [${cpu.q1.toFixed(1)} … ${cpu.q3.toFixed(1)}]`,
    );
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
  let servers: Server[] = [];
  try {
    const sides = await startSides(dir);
    servers = Object.values(sides);
    await warmUp(servers);
    const echo = await echoRate();
    const samples = await interleaved(groupsOf(sides), () => settle(servers));
    printTable(samples);
    await printSummary(samples, echo, sides.ours);
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
    rmSync(dir, { recursive: true, force: true });
  }
}

async function printSummary(samples: Samples<Sample>, echo: number, ours: Server): Promise<void> {
  const rate = (name: string): number[] => column(samples, `${name} 64`, "perSecond");
  const cpu = (name: string): number =>
    rounded(quartiles(column(samples, `${name} 64`, "serverCpuUs")).median);
  const ratio = (name: string, other: string): number =>
    rounded(pairedRatio(rate(name), rate(other)).median);
  const medians = ["ours", "memory", "file", "http", "hono"].map(
    (name) => quartiles(rate(name)).median,
  );
  const fastest = Math.max(...medians);
  console.log(
    `bare echo, 64 connections: ${echo.toFixed(0)}/s, ${(echo / fastest).toFixed(2)}× the fastest side`,
  );
  const ratios = {
    memory64: ratio("ours", "memory"),
    file64: ratio("ours", "file"),
    aa64: ratio("ours", "ours2"),
    recogniserVsNodeHttp: ratio("recognised", "http"),
    recogniserVsHono: ratio("recognised", "hono"),
    mixed: ratio("mixed", "memoryMixed"),
  };
  const counters = {
    cpuUs64: cpu("ours"),
    cpuUsMemory64: cpu("memory"),
    cpuUsFile64: cpu("file"),
    cpuUsNodeHttp64: cpu("http"),
    cpuUsHono64: cpu("hono"),
    cpuUsMixed64: cpu("mixed"),
    aa64: ratios.aa64,
    idleCpuPercent: rounded(await idleCpuPercent(ours)),
    echoOverFastest: rounded(echo / fastest),
  };
  console.log(JSON.stringify({ bench: "append", ratios, counters }));
}
