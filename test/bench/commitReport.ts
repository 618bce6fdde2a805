import type { Closed } from "./outstanding.ts";
import type { Samples } from "./samples.ts";
import { rounded } from "./statistics.ts";

const KiB = 1024;
export const sizes = {
  "4k": 4 * KiB,
  "16k": 16 * KiB,
  "64k": 64 * KiB,
  "256k": 256 * KiB,
  "1m": 1024 * KiB,
};
export const sizeNames = Object.keys(sizes) as (keyof typeof sizes)[];
export const outstandingCounts = [1, 16, 64, 256, 1024] as const;

export function printTables(samples: Samples): void {
  const cell = (name: string, digits = 0, width = 10): string =>
    samples.median(name).toFixed(digits).padStart(width);
  console.log("\nbatches of     fio/s   uring/s   share  µs CPU a commit");
  for (const name of sizeNames) {
    const share = samples.ratio(`uring ${name}`, `fio ${name}`).toFixed(2).padStart(8);
    console.log(
      `${name.padEnd(10)}${cell(`fio ${name}`)}${cell(`uring ${name}`)}${share}${cell(`uring ${name} cpu`, 0, 17)}`,
    );
  }
  console.log("\n16 KiB                commits/s  µs CPU a commit");
  for (const backend of ["uring", "threads"]) {
    for (const how of ["buffered 1", "buffered 4", "direct 1", "direct 4"]) {
      const name = `${backend} ${how}`;
      console.log(`${name.padEnd(20)}${cell(name, 0, 11)}${cell(`${name} cpu`, 0, 17)}`);
    }
  }
  console.log(`one submit each     ${cell("per operation 16k", 0, 11)}`);
  console.log("\nwaiting  side     records/s     p50 µs     p99 µs  µs CPU a record");
  for (const outstanding of outstandingCounts) {
    for (const side of ["disk", "group"]) {
      printClosed(samples, side, outstanding);
    }
  }
  printClosed(samples, "place", 64);
  printClosed(samples, "memory", 1);
  printClosed(samples, "memory", 64);
  console.log(`\nfio, 4 KiB, depth 1: p50 ${cell("fio depth 1 p50").trim()} µs`);
}

function printClosed(samples: Samples, side: string, outstanding: number): void {
  const cell = (key: keyof Closed, digits = 0, width = 11): string =>
    samples.median(`${side}${outstanding} ${key}`).toFixed(digits).padStart(width);
  console.log(
    `${String(outstanding).padStart(7)}  ${side.padEnd(7)}${cell("perSecond")}${cell("p50Us")}${cell("p99Us")}${cell("cpuUs", 2, 17)}`,
  );
}

export function results(samples: Samples): string {
  const of = (ours: string, theirs: string): number => samples.ratio(ours, theirs);
  const ratios = {
    fio16k: of("uring 16k", "fio 16k"),
    fio64k: of("uring 64k", "fio 64k"),
    fio256k: of("uring 256k", "fio 256k"),
    fio1m: of("uring 1m", "fio 1m"),
    threadsFio64k: of("threads 64k", "fio 64k"),
    fs64: of("disk64 perSecond", "group64 perSecond"),
    fsInPlace64: of("disk64 perSecond", "place64 perSecond"),
    fsP99_64: of("disk64 p99Us", "group64 p99Us"),
    fsCpu64: of("disk64 cpuUs", "group64 cpuUs"),
    perOp16k: of("uring 16k", "per operation 16k"),
    uringVsThreadsCpu: of("uring direct 4 cpu", "threads direct 4 cpu"),
    ackP50_1: of("disk1 p50Us", "fio depth 1 p50"),
    memoryAppendP50: of("memory1 p50Us", "disk1 p50Us"),
    cpuVsPolling25k: of("parked cpu", "polling cpu"),
    aa64k: of("again 64k", "uring 64k"),
  };
  const counters = {
    doorbellsPerCommit: rounded(samples.median("uring 16k bells")),
    deviceFlushesPerCommit: rounded(samples.median("flushes")),
    bytesWrittenPerPayload64k: rounded(samples.median("uring 64k bytes")),
  };
  return JSON.stringify({ bench: "commit", ratios, counters });
}
