/**
 * One writer, 10 to 2000 SSE readers: deliveries a second and how long each was under way, against the npm reference
 * server. A message is written when all readers have the one before. All sides are up at once, ours twice (A/A).
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Client, compileClient } from "./client.ts";
import { cpuMicros } from "./cpu.ts";
import { buildDir } from "./place.ts";
import { createStream, interleaved, settle, type Samples, type Turn } from "./rounds.ts";
import { startOurs, startServer, type Server } from "./server.ts";
import { pairedRatio, quartiles, rounded } from "./statistics.ts";

const seconds = 1;
const readerCounts = [10, 200, 800, 2000] as const;

interface Sample {
  readonly messages: number;
  readonly deliveries: number;
  /** Deliveries. */
  readonly perSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  /** CPU of the server and of the client per delivery, µs. */
  readonly serverCpuUs: number;
  readonly clientCpuUs: number;
  /** Resident memory of the server that came with the readers, per reader. */
  readonly bytesPerReader: number;
}

function residentBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}

function turn(server: Server, program: string, readers: number): Turn<Sample> {
  const measure = async (round: number): Promise<Sample> => {
    const stream = `sse-${readers}-${round}`;
    await createStream(server, stream, "text/plain");
    const memory = residentBytes(server.pid);
    const { port } = new URL(server.url);
    const client = new Client(program, [port, stream, String(readers), String(seconds)]);
    await client.line();
    const bytesPerReader = (residentBytes(server.pid) - memory) / readers;
    const before = cpuMicros(server.pid);
    client.go();
    const result = JSON.parse(await client.line()) as Sample;
    const serverCpuUs = (cpuMicros(server.pid) - before) / result.deliveries;
    return { ...result, serverCpuUs, bytesPerReader };
  };
  return { name: `${server.name} ${readers}`, measure };
}

const column = (samples: Samples<Sample>, name: string, key: keyof Sample): number[] =>
  (samples.get(name) ?? []).map((sample) => sample[key]);

function printTable(samples: Samples<Sample>): void {
  console.log(
    "side, readers  deliveries/s  [q1 … q3]            p50 µs   p99 µs  server CPU µs  client CPU µs  bytes/reader",
  );
  for (const name of samples.keys()) {
    const rate = quartiles(column(samples, name, "perSecond"));
    const spread = `[${rate.q1.toFixed(0)} … ${rate.q3.toFixed(0)}]`;
    const cell = (key: keyof Sample, width: number, digits = 0): string =>
      quartiles(column(samples, name, key))
        .median.toFixed(digits)
        .padStart(width);
    console.log(
      `${name.padEnd(13)}  ${cell("perSecond", 12)}  ${spread.padEnd(19)}  ${cell("p50Us", 7)}  ${cell("p99Us", 7)}  ${cell("serverCpuUs", 13, 2)}  ${cell("clientCpuUs", 13, 2)}  ${cell("bytesPerReader", 12)}`,
    );
  }
}

function printSummary(samples: Samples<Sample>): void {
  const ratio = (name: string, other: string, key: keyof Sample): number =>
    rounded(pairedRatio(column(samples, name, key), column(samples, other, key)).median);
  const median = (name: string, key: keyof Sample): number =>
    rounded(quartiles(column(samples, name, key)).median);
  const ratios = {
    deliveries800: ratio("ours 800", "memory 800", "perSecond"),
    p50_800: ratio("ours 800", "memory 800", "p50Us"),
    deliveries2000: ratio("ours 2000", "memory 2000", "perSecond"),
    aa800: ratio("ours 800", "ours2 800", "perSecond"),
  };
  const counters = {
    bytesPerReader: median("ours 2000", "bytesPerReader"),
    bytesPerReaderMemory: median("memory 2000", "bytesPerReader"),
    cpuUsPerDelivery800: median("ours 800", "serverCpuUs"),
    cpuUsPerDeliveryMemory800: median("memory 800", "serverCpuUs"),
    aa800: ratios.aa800,
    bareOverOurs800: ratio("bare 800", "ours 800", "perSecond"),
  };
  console.log(JSON.stringify({ bench: "sse", ratios, counters }));
}

export async function benchSse(): Promise<void> {
  const dir = mkdtempSync(join(buildDir(), "bench-sse-"));
  const program = compileClient("readers");
  const servers: Server[] = [];
  try {
    for (const name of ["ours", "ours2"]) {
      servers.push(await startOurs(name, dir));
    }
    servers.push(await startServer("memory", "servers/reference.ts"));
    // Shows that the client is not the limit.
    servers.push(await startServer("bare", "servers/fanout.ts"));
    const groups = readerCounts.map((readers) =>
      servers.map((server) => turn(server, program, readers)),
    );
    const samples = await interleaved(groups, () => settle(servers));
    printTable(samples);
    printSummary(samples);
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
    rmSync(dir, { recursive: true, force: true });
  }
}
