import {
  openJournal,
  type Findings,
  type Journal,
  type SegmentBudget,
} from "../../../origin/journal/mod.ts";
import { MemoryDisk, type Disk, type DiskCall } from "../../../origin/storage/mod.ts";
import { crc32c } from "../../../shared/crc/mod.ts";
import { ForebayError } from "../../../shared/errors/mod.ts";
import { ManualClock } from "../manualClock.ts";
import { seededRandom } from "../seededRandom.ts";

export const dir = "/data";
export const shardDir = "/data/journal/0";
export const KiB = 1024;

export interface Opened {
  readonly journal: Journal;
  readonly clock: ManualClock;
  /** What recovery replayed, in order of LSN. */
  readonly replayed: Uint8Array[];
  /** LSN of the first of them; 0 for none. */
  readonly firstLsn: number;
  readonly findings: Findings;
  /** Every `onFull`, in order. */
  readonly shortages: (string | null)[];
  /** Every `onDurable`, in order. */
  readonly advances: number[];
  readonly failures: Error[];
}

export interface OpenChoices {
  readonly segmentBytes?: number;
  readonly budgetBytes?: number;
  readonly budget?: SegmentBudget;
  readonly dir?: string;
  readonly seed?: number;
  readonly clock?: ManualClock;
}

/** Opens a journal in `/data` of `disk` and keeps what it tells. Segments are 16 KiB unless said otherwise. */
export async function open(disk: Disk, choices: OpenChoices = {}): Promise<Opened> {
  const { segmentBytes = 16 * KiB, budgetBytes = 1024 * KiB, seed = 1 } = choices;
  const clock = choices.clock ?? new ManualClock();
  const replayed: Uint8Array[] = [];
  const shortages: (string | null)[] = [];
  let firstLsn = 0;
  let findings: Findings | undefined;
  const advances: number[] = [];
  const failures: Error[] = [];
  const events = {
    onDurable: (durable: number): void => {
      advances.push(durable);
    },
    onFailed: (error: Error): void => {
      failures.push(error);
    },
    onFull: (reason: string | null): void => {
      shortages.push(reason);
    },
  };
  const random = seededRandom(seed);
  const onRecovered = (found: Findings): void => {
    findings = found;
  };
  const options = {
    ...{ dir: choices.dir ?? dir, disk, clock, random, segmentBytes, budgetBytes, events },
    ...(choices.budget === undefined ? {} : { budget: choices.budget }),
    onRecovered,
  };
  const journal = await openJournal(options, (lsn, bytes) => {
    firstLsn ||= lsn;
    replayed.push(bytes.slice());
    if (lsn !== firstLsn + replayed.length - 1) {
      throw new Error(`replayed LSN ${lsn} as entry ${replayed.length} from ${firstLsn} on`);
    }
  });
  if (findings === undefined) {
    throw new Error("opened without a word about what was found");
  }
  return { journal, clock, replayed, firstLsn, findings, shortages, advances, failures };
}

/** The error an open is refused with. */
export async function openRefusal(disk: Disk, choices: OpenChoices = {}): Promise<ForebayError> {
  try {
    const { journal } = await open(disk, choices);
    await journal.close();
  } catch (error) {
    if (error instanceof ForebayError) {
      return error;
    }
    throw error;
  }
  throw new Error("the journal opened");
}

/** The error a call throws. */
export function refusal(call: () => unknown): ForebayError {
  try {
    call();
  } catch (error) {
    if (error instanceof ForebayError) {
      return error;
    }
    throw error;
  }
  throw new Error("the call was not refused");
}

/** `length` bytes that tell which entry they are of. */
export function entry(n: number, length = 100): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) {
    bytes[i] = n * 131 + i * 7 + (i >> 8);
  }
  return bytes;
}

/** Entries in a form whose differences can be read. */
export function marks(entries: readonly Uint8Array[]): string[] {
  return entries.map((bytes) => `${bytes.length}:${crc32c(bytes).toString(16)}`);
}

/** A copy of every file, to be compared or damaged and put back. */
export function snapshot(disk: MemoryDisk): Map<string, Uint8Array> {
  return new Map([...disk.files()].map(([path, bytes]) => [path, bytes.slice()]));
}

/** A disk that holds exactly these files. */
export async function diskOf(files: ReadonlyMap<string, Uint8Array>): Promise<MemoryDisk> {
  const disk = new MemoryDisk();
  for (const level of ["/data", "/data/journal", shardDir]) {
    await disk.mkdir(level);
  }
  for (const [path, bytes] of files) {
    const file = await disk.open(path, "create");
    await file.write(bytes, 0);
    await file.sync();
    await file.close();
  }
  for (const level of ["/", "/data", "/data/journal", shardDir]) {
    await disk.syncDirectory(level);
  }
  return disk;
}

/** Lets everything that can run without the clock run. */
export async function settle(turns = 5): Promise<void> {
  for (let i = 0; i < turns; i++) {
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

/** Releases the calls of a stepped disk, oldest first, until `promise` settles. */
export async function drive<T>(disk: MemoryDisk, promise: Promise<T>): Promise<T> {
  let pending = true;
  const done = promise.finally(() => {
    pending = false;
  });
  done.catch(() => undefined);
  while (pending) {
    disk.waiting[0]?.release();
    await settle(1);
  }
  return done;
}

/** Calls that change the disk or make a change durable, in the order they were made. */
export function recorded(disk: MemoryDisk): string[] {
  const log: string[] = [];
  const kinds = new Set(["mkdir", "unlink", "sync", "syncDirectory", "lock"]);
  const short = (path: string): string =>
    path
      .replace(/^\/data\/journal\/0\//, "")
      .replace(/^[0-9a-f]{16}/, (digits) => String(Number.parseInt(digits, 16)));
  disk.observer = (call: DiskCall) => {
    const file = short(call.path);
    if (call.name === "write") {
      log.push(`write ${file} ${call.position}+${call.bytes}`);
    } else if (call.name === "open" && call.detail !== "read" && call.detail !== "update") {
      log.push(`open ${file} ${call.detail}`);
    } else if (call.name === "rename") {
      log.push(`rename ${file} ${short(call.detail)}`);
    } else if (kinds.has(call.name)) {
      log.push(`${call.name} ${file}`);
    }
    return undefined;
  };
  return log;
}

/** Fails calls of one kind, from now on or for the next `times`. */
export function failing(
  which: (call: DiskCall) => boolean,
  code: string,
  times = Infinity,
): (call: DiskCall) => string | undefined {
  let left = times;
  return (call) => (which(call) && left-- > 0 ? code : undefined);
}
