/**
 * The journal's commit path against the disk itself (fio), against Node's own file calls, and against itself: other
 * backends, depths, memory. Sides are interleaved in rounds; ratios are taken round by round.
 */
import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { openJournal, type Journal } from "../../origin/journal/mod.ts";
import { clock, random } from "../../origin/ports/mod.ts";
import { MemoryDisk, realDisk, type Disk } from "../../origin/storage/mod.ts";
import { fio } from "./fio.ts";
import { closedLoop, FsGroupCommit, JournalLog, recordBytes, type Closed } from "./outstanding.ts";
import { buildDir } from "./place.ts";
import { saturate, type Saturated, type Saturation } from "./saturated.ts";
import { pairedRatio, quartiles, rounded } from "./statistics.ts";

const rounds = Number(process.env["FOREBAY_BENCH_ROUNDS"] ?? "15");
const slotMs = 400;
const fileBytes = 64 * 1024 * 1024;
const KiB = 1024;
const sizes = {
  "4k": 4 * KiB,
  "16k": 16 * KiB,
  "64k": 64 * KiB,
  "256k": 256 * KiB,
  "1m": 1024 * KiB,
};
const sizeNames = Object.keys(sizes) as (keyof typeof sizes)[];
const outstandingCounts = [1, 16, 64, 256, 1024] as const;

/** One number per round, by name. */
class Samples {
  readonly #byName = new Map<string, number[]>();

  add(name: string, value: number): void {
    const list = this.#byName.get(name) ?? [];
    list.push(value);
    this.#byName.set(name, list);
  }

  of(name: string): number[] {
    const list = this.#byName.get(name);
    if (list === undefined) {
      throw new Error(`nothing was measured as ${name}`);
    }
    return list;
  }

  median(name: string): number {
    return quartiles(this.of(name)).median;
  }

  ratio(ours: string, theirs: string): number {
    return rounded(pairedRatio(this.of(ours), this.of(theirs)).median);
  }
}

/** Everything that is open for the whole run. */
interface Bench {
  readonly samples: Samples;
  /** Zero-written. */
  readonly file: string;
  readonly disk: JournalLog;
  readonly memory: JournalLog;
  readonly group: FsGroupCommit;
}

/** One measurement; each round makes all of them, in an order that turns. */
type Slot = (bench: Bench) => Promise<void>;

function addSaturated(samples: Samples, name: string, result: Saturated): void {
  samples.add(name, result.perSecond);
  samples.add(`${name} cpu`, result.cpuUs);
  samples.add(`${name} bells`, result.bellsPerCommit);
  samples.add(`${name} bytes`, result.bytesWritten / result.payloadBytes);
}

function saturation(file: string, changes: Partial<Saturation>): Saturation {
  const usual = { backend: "uring", batchBytes: 16 * KiB, depth: 4, direct: true } as const;
  return { ...usual, file, fileBytes, ms: slotMs, ...changes };
}

const saturating =
  (name: string, changes: Partial<Saturation>): Slot =>
  async ({ samples, file }) => {
    addSaturated(samples, name, await saturate(saturation(file, changes)));
  };

const raw =
  (name: string, batchBytes: number, depth: number, perOperation = false): Slot =>
  async ({ samples, file }) => {
    const job = { file, fileBytes, batchBytes, depth, ms: slotMs, perOperation };
    const { perSecond, p50Us } = await fio(job);
    samples.add(name, perSecond);
    samples.add(`${name} p50`, p50Us);
  };

const closed =
  (side: "disk" | "memory" | "group", outstanding: number): Slot =>
  async ({ samples, ...logs }) => {
    const result = await closedLoop(logs[side].begin(), outstanding, slotMs);
    for (const [key, value] of Object.entries(result) as [keyof Closed, number][]) {
      samples.add(`${side}${outstanding} ${key}`, value);
    }
  };

/** Device flushes and commits of the same while, which others on the machine must keep still for. */
const flushes: Slot = async ({ samples, file }) => {
  const before = deviceFlushes(file);
  const result = await saturate(saturation(file, { batchBytes: 64 * KiB }));
  samples.add("flushes", (deviceFlushes(file) - before) / result.commits);
};

/** 25,000 small batches a second, which only memory takes: parked between them, or polling. */
const small =
  (name: string, polling: boolean): Slot =>
  async ({ samples }) => {
    const file = `/dev/shm/forebay-bench-${process.pid}`;
    writeZeros(file, 4 * 1024 * KiB);
    try {
      const changes = {
        batchBytes: 4 * KiB,
        perSecond: 25_000,
        polling,
        fileBytes: 4 * 1024 * KiB,
      };
      addSaturated(samples, name, await saturate(saturation(file, changes)));
    } finally {
      rmSync(file);
    }
  };

function slots(): Slot[] {
  const list: Slot[] = [];
  for (const name of sizeNames) {
    list.push(raw(`fio ${name}`, sizes[name], 4));
    list.push(saturating(`uring ${name}`, { batchBytes: sizes[name] }));
  }
  list.push(saturating("threads 64k", { backend: "threads", batchBytes: sizes["64k"] }));
  list.push(saturating("again 64k", { batchBytes: sizes["64k"] }));
  list.push(raw("fio depth 1", 4 * KiB, 1));
  list.push(raw("per operation 16k", 16 * KiB, 1, true));
  for (const backend of ["uring", "threads"] as const) {
    for (const direct of [false, true]) {
      for (const depth of [1, 4]) {
        const name = `${backend} ${direct ? "direct" : "buffered"} ${depth}`;
        list.push(saturating(name, { backend, direct, depth }));
      }
    }
  }
  for (const outstanding of outstandingCounts) {
    list.push(closed("disk", outstanding), closed("group", outstanding));
  }
  list.push(closed("memory", 1), closed("memory", 64));
  list.push(flushes, small("parked", false), small("polling", true));
  return list;
}

function writeZeros(path: string, bytes: number): void {
  const fd = openSync(path, "w");
  for (let at = 0; at < bytes; at += 1 << 20) {
    writeSync(fd, new Uint8Array(1 << 20));
  }
  closeSync(fd);
}

/** Flushes that the device of `path` has done since boot (Documentation/admin-guide/iostats.rst, field 16). */
function deviceFlushes(path: string): number {
  const { dev } = statSync(path);
  const major = Math.floor(dev / 256) % 4096;
  const minor = dev % 256;
  const line = readFileSync("/proc/diskstats", "utf8")
    .split("\n")
    .map((text) => text.trim().split(/\s+/))
    .find(([first, second]) => Number(first) === major && Number(second) === minor);
  return Number(line?.[18] ?? Number.NaN);
}

async function journalLog(dir: string, disk: Disk): Promise<{ log: JournalLog; journal: Journal }> {
  const log: JournalLog = new JournalLog(() => journal);
  const journal: Journal = await openJournal(
    {
      ...{ dir, disk, clock, random, segmentBytes: fileBytes, budgetBytes: 16 * fileBytes },
      events: {
        onDurable: (durable) => log.advanced(durable),
        onFailed: (error) => {
          throw error;
        },
      },
    },
    () => undefined,
  );
  return { log, journal };
}

function printTables(samples: Samples): void {
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

function results(samples: Samples): string {
  const of = (ours: string, theirs: string): number => samples.ratio(ours, theirs);
  const ratios = {
    fio16k: of("uring 16k", "fio 16k"),
    fio64k: of("uring 64k", "fio 64k"),
    fio256k: of("uring 256k", "fio 256k"),
    fio1m: of("uring 1m", "fio 1m"),
    threadsFio64k: of("threads 64k", "fio 64k"),
    fs64: of("disk64 perSecond", "group64 perSecond"),
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

export async function benchCommit(): Promise<void> {
  const dir = mkdtempSync(join(buildDir(), "bench-commit-"));
  const file = join(dir, "zeros");
  writeZeros(file, fileBytes);
  const groupFile = join(dir, "group");
  writeZeros(groupFile, fileBytes);
  const groupFd = openSync(groupFile, "r+");
  const disk = await journalLog(join(dir, "data"), realDisk);
  const memory = await journalLog("/memory", new MemoryDisk({ volatile: true }));
  console.log(
    `records of ${recordBytes} bytes; ${disk.journal.storage}: ${disk.journal.storageReason}`,
  );
  const samples = new Samples();
  const group = new FsGroupCommit(groupFd, fileBytes);
  const bench = { samples, file, disk: disk.log, memory: memory.log, group };
  try {
    const list = slots();
    for (let round = 0; round < rounds; round++) {
      const order = round % 2 === 0 ? list : list.toReversed();
      for (let i = 0; i < order.length; i++) {
        // Where a round begins moves on by a part that shares no factor with the number of slots.
        await order[(i + round * 7) % order.length]?.(bench);
      }
      process.stderr.write(`round ${round + 1} of ${rounds}\n`);
    }
    printTables(samples);
    console.log(results(samples));
  } finally {
    await disk.journal.close();
    await memory.journal.close();
    closeSync(groupFd);
    rmSync(dir, { recursive: true, force: true });
  }
}
