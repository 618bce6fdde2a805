/**
 * The journal's commit path against the disk itself (fio), against Node's own file calls, and against itself: other
 * backends, depths, memory. Sides are interleaved in rounds; ratios are taken round by round.
 */
import {
  closeSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import {
  MemoryJournal,
  openJournal,
  type Journal,
  type JournalEvents,
} from "../../origin/journal/mod.ts";
import { clock, random } from "../../origin/ports/mod.ts";
import { realDisk } from "../../origin/storage/mod.ts";
import { outstandingCounts, printTables, results, sizeNames, sizes } from "./commitReport.ts";
import { fio } from "./fio.ts";
import { closedLoop, FsGroupCommit, JournalLog, recordBytes, type Closed } from "./outstanding.ts";
import { buildDir } from "./place.ts";
import { Samples } from "./samples.ts";
import { saturate, type Saturated, type Saturation } from "./saturated.ts";

const rounds = Number(process.env["FOREBAY_BENCH_ROUNDS"] ?? "15");
const slotMs = 400;
const fileBytes = 64 * 1024 * 1024;
const KiB = 1024;

/** Everything that is open for the whole run. */
interface Bench {
  readonly samples: Samples;
  /** Zero-written. */
  readonly file: string;
  readonly disk: JournalLog;
  readonly memory: JournalLog;
  /** Node's file calls on a growing log, and in place. */
  readonly group: FsGroupCommit;
  readonly place: FsGroupCommit;
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
  (side: "disk" | "memory" | "group" | "place", outstanding: number): Slot =>
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
  list.push(closed("place", 64), closed("memory", 1), closed("memory", 64));
  list.push(flushes, small("parked", false), small("polling", true));
  return list;
}

function writeZeros(path: string, bytes: number): void {
  const fd = openSync(path, "w");
  for (let at = 0; at < bytes; at += 1 << 20) {
    writeSync(fd, new Uint8Array(1 << 20));
  }
  // Blocks that are still to be allocated would cost the first who overwrites them.
  fsyncSync(fd);
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

interface OpenLog {
  readonly log: JournalLog;
  readonly journal: Journal;
}

const journalSizes = { segmentBytes: fileBytes, budgetBytes: 16 * fileBytes };

function eventsOf(log: () => JournalLog): JournalEvents {
  return {
    onDurable: (durable) => log().advanced(durable),
    onFailed: (error) => {
      throw error;
    },
  };
}

async function onDisk(dir: string): Promise<OpenLog> {
  const log: JournalLog = new JournalLog(() => journal);
  const events = eventsOf(() => log);
  const options = { dir, disk: realDisk, clock, random, ...journalSizes, events };
  const journal: Journal = await openJournal(options, () => undefined);
  return { log, journal };
}

function inMemory(): OpenLog {
  const log: JournalLog = new JournalLog(() => journal);
  const events = eventsOf(() => log);
  const journal: Journal = new MemoryJournal({ random, ...journalSizes, events });
  return { log, journal };
}

export async function benchCommit(): Promise<void> {
  const dir = mkdtempSync(join(buildDir(), "bench-commit-"));
  const file = join(dir, "zeros");
  writeZeros(file, fileBytes);
  const placeFile = join(dir, "place");
  writeZeros(placeFile, fileBytes);
  const fds = [openSync(join(dir, "group"), "w"), openSync(placeFile, "r+")] as const;
  const disk = await onDisk(join(dir, "data"));
  const memory = inMemory();
  console.log(
    `records of ${recordBytes} bytes; ${disk.journal.storage}: ${disk.journal.storageReason}`,
  );
  const samples = new Samples();
  const group = new FsGroupCommit(fds[0], null);
  const place = new FsGroupCommit(fds[1], fileBytes);
  const bench = { samples, file, disk: disk.log, memory: memory.log, group, place };
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
    fds.forEach((fd) => closeSync(fd));
    rmSync(dir, { recursive: true, force: true });
  }
}
