import { openJournal, type Journal } from "../../../origin/journal/mod.ts";
import { MemoryDisk, type Disk } from "../../../origin/storage/mod.ts";
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
  /** What recovery replayed, by LSN from 1. */
  readonly replayed: Uint8Array[];
  /** Every `onDurable`, in order. */
  readonly advances: number[];
  readonly failures: Error[];
}

export interface OpenChoices {
  readonly segmentBytes?: number;
  readonly budgetBytes?: number;
  readonly seed?: number;
  readonly clock?: ManualClock;
}

/** Opens a journal in `/data` of `disk` and keeps what it tells. Segments are 16 KiB unless said otherwise. */
export async function open(disk: Disk, choices: OpenChoices = {}): Promise<Opened> {
  const { segmentBytes = 16 * KiB, budgetBytes = 1024 * KiB, seed = 1 } = choices;
  const clock = choices.clock ?? new ManualClock();
  const replayed: Uint8Array[] = [];
  const advances: number[] = [];
  const failures: Error[] = [];
  const events = {
    onDurable: (durable: number): void => {
      advances.push(durable);
    },
    onFailed: (error: Error): void => {
      failures.push(error);
    },
  };
  const random = seededRandom(seed);
  const options = { dir, disk, clock, random, segmentBytes, budgetBytes, events };
  const journal = await openJournal(options, (lsn, bytes) => {
    replayed.push(bytes.slice());
    if (lsn !== replayed.length) {
      throw new Error(`replayed LSN ${lsn} as entry ${replayed.length}`);
    }
  });
  return { journal, clock, replayed, advances, failures };
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
