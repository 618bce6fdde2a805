import { basename, dirname, resolve } from "node:path";
import { ForebayError } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import type { Clock, Random } from "../../shared/ports/mod.ts";
import {
  blockBytes,
  errorCode,
  isDiskFull,
  isUnwritable,
  makeDirectories,
  type Disk,
  type DirectoryLock,
} from "../storage/mod.ts";
import { nativeAbsence, nativeLayer, type NativeLayer } from "../native/mod.ts";
import type { Committer } from "./committer.ts";
import { newCounters, type Counters } from "./counters.ts";
import { DiskCommitter, type DiskStart } from "./diskCommitter.ts";
import { ShardJournal } from "./journal.ts";
import { hex } from "./layout.ts";
import { SegmentBudget } from "./budget.ts";
import type { Findings } from "./findings.ts";
import { Manifest } from "./manifest.ts";
import { NativeCommitter, type NativeStart } from "./nativeCommitter.ts";
import { chooseStorage, type Backend, type StorageChoice } from "./probe.ts";
import { setAsideIfDamaged } from "./quarantine.ts";
import { recover, type Recovered } from "./recover.ts";
import { Ring } from "./ring.ts";
import type { Journal, JournalEvents, Replay } from "./types.ts";

export { SegmentBudget, type BudgetMember } from "./budget.ts";
export type { BatchHeader } from "./batchHeader.ts";
export type { Findings } from "./findings.ts";
export type { StorageChoice } from "./probe.ts";
export {
  missingRanges,
  readableRanges,
  surveyJournal,
  type JournalSurvey,
  type LsnRange,
  type SegmentSurvey,
} from "./survey.ts";
export { verifyJournal, type Verified } from "./recover.ts";
export { listQuarantine, restoreQuarantined, type Restored } from "./quarantine.ts";
export { MemoryJournal, type MemoryJournalOptions } from "./memoryJournal.ts";
export { TrimMarks } from "./trimMarks.ts";
export type { Entry, EntryReader, Journal, JournalEvents, JournalStats, Replay } from "./types.ts";

export interface JournalOptions {
  /** The data directory; made if it is missing. */
  readonly dir: string;
  /**
   * Where in it the journal lies, two names. `journal/0` is the one of the streams. A slot that an earlier process left is
   * adopted by opening it: its segments are charged to the budget as they are found.
   */
  readonly slot?: string;
  /** The data directory's lock, when the caller holds it for several slots and releases it after their `close`. */
  readonly lock?: DirectoryLock;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  /** Size of a segment, whole blocks, at least 4; a journal keeps the size it was made with. */
  readonly segmentBytes?: number;
  /** All segments together; at least two of them. Without meaning when `budget` is given. */
  readonly budgetBytes?: number;
  /** Shared with other rings of this process. */
  readonly budget?: SegmentBudget;
  /** How batches are made durable; "auto", the default, takes the best that works here. */
  readonly storage?: StorageChoice;
  /** Instead of the addon this process has; null: as if there was none. */
  readonly native?: NativeLayer | null;
  readonly events: JournalEvents;
  /**
   * What becomes of a damaged journal. `refuse`, the default: the start fails and nothing is changed. `quarantine`: its
   * directory gets another name, every byte kept, and a new journal is begun.
   */
  readonly onDamage?: "refuse" | "quarantine";
  /** Told when a journal was set aside: where it lies, why, and exactly what is not served any more. */
  readonly onQuarantined?: (message: string) => void;
  /** Told once, before anything is served: which rows of the recovery table were met. */
  readonly onRecovered?: (findings: Findings) => void;
}

const lockWaitMs = 5000;
const theStreams = "journal/0";

/**
 * Takes the data directory's lock, recovers, replays every entry, and is ready to append.
 *
 * @throws ForebayError `data_locked` | `data_unwritable` | `disk_full` | `journal_corrupt` | `format_unsupported` |
 *   `config_invalid` | `storage_unavailable`; nothing was changed on the disk
 */
export async function openJournal(given: JournalOptions, replay: Replay): Promise<Journal> {
  const { segmentBytes, budgetBytes } = sizes(given);
  const budget = given.budget ?? new SegmentBudget(budgetBytes);
  const options = { ...given, dir: resolve(given.dir), segmentBytes, budget };
  let lock: DirectoryLock | undefined;
  try {
    await makeDirectories(options.disk, options.dir);
    lock = given.lock === undefined ? await lockData(options.disk, options.dir) : lentLock;
    return await openLocked(options, lock, replay);
  } catch (error) {
    await lock?.release();
    throw startError(error, options.dir);
  }
}

/**
 * Takes the lock of a data directory for several slots.
 *
 * @throws ForebayError `data_locked` after 5 s, naming the holder
 */
export function lockData(disk: Disk, dir: string): Promise<DirectoryLock> {
  return disk.lock(resolve(dir), lockWaitMs);
}

/** What a slot releases when the lock is not its own. */
const lentLock: DirectoryLock = { release: () => Promise.resolve() };

type Sized = JournalOptions & { readonly segmentBytes: number; readonly budget: SegmentBudget };

function sizes(given: JournalOptions): { segmentBytes: number; budgetBytes: number } {
  const { segmentBytes = limits.segmentBytes } = given;
  const budgetBytes = given.budget?.capBytes ?? given.budgetBytes ?? limits.journalBudgetBytes;
  if (segmentBytes % blockBytes !== 0 || segmentBytes < 4 * blockBytes) {
    throw new ForebayError(
      "config_invalid",
      `segments of ${segmentBytes} bytes: expected a multiple of ${blockBytes}, at least ${4 * blockBytes}`,
    );
  }
  if (budgetBytes < 2 * segmentBytes) {
    throw new ForebayError(
      "config_invalid",
      `a journal budget of ${budgetBytes} bytes: expected at least two segments of ${segmentBytes}`,
    );
  }
  return { segmentBytes, budgetBytes };
}

async function openLocked(options: Sized, lock: DirectoryLock, replay: Replay): Promise<Journal> {
  const { disk, random } = options;
  const dir = `${options.dir}/${options.slot ?? theStreams}`;
  const counters = newCounters();
  await makeDirectories(disk, dir);
  if (options.slot === undefined) {
    await checkShards(disk, options.dir);
  }
  await syncAbove(disk, dir);
  if (options.onDamage === "quarantine") {
    // Before anything is replayed: the owner is given one journal's entries or the other's.
    const aside = await setAsideIfDamaged(disk, dirname(dir), basename(dir));
    if (aside !== undefined) {
      options.onQuarantined?.(aside.message);
      await makeDirectories(disk, dir);
    }
  }
  const recovered = await recover({ ...options, dir, counters }, replay);
  for (const name of recovered.leftovers) {
    await disk.unlink(`${dir}/${name}`);
  }
  const id = random.bytes(16);
  const manifest = recovered.manifest ?? (await Manifest.create(disk, dir, { id, counters }));
  const { watermark, segments } = recovered;
  try {
    if (watermark.damage !== null) {
      await watermark.repair(manifest.id);
    }
    if (manifest.values.head < segments.head) {
      await manifest.update({ head: segments.head });
    }
    options.onRecovered?.(recovered.findings);
    return await start({ options, dir, lock, counters, recovered, manifest });
  } catch (error) {
    await watermark.close();
    await manifest.close();
    throw error;
  }
}

interface Start {
  readonly options: Sized;
  readonly dir: string;
  readonly lock: DirectoryLock;
  readonly counters: Counters;
  readonly recovered: Recovered;
  readonly manifest: Manifest;
}

async function start(given: Start): Promise<Journal> {
  const { options, dir, lock, counters, recovered, manifest } = given;
  const { disk } = options;
  const space = await disk.space(dir);
  const { volatile } = space;
  const native = options.native === null ? undefined : (options.native ?? nativeLayer());
  const absence = options.native === null ? "switched off" : nativeAbsence();
  const wanted = options.storage ?? "auto";
  const probe = { disk, dir, wanted, native, nativeAbsence: absence, space };
  const { backend, reason } = await chooseStorage(probe);
  const direct = backend !== "buffered";
  const { watermark } = recovered;
  const ringOptions = { ...options, dir, manifest, watermark, counters, direct, volatile };
  const ring = new Ring(ringOptions, recovered.segments);
  try {
    if (recovered.active === undefined) {
      await ring.openNew();
    } else {
      await ring.open(recovered.active.header);
    }
  } catch (error) {
    ring.abandon();
    throw error;
  }
  const areaBytes = Math.min(limits.journalBatchBytesMax, options.segmentBytes);
  const { chain, term } = recovered;
  const begin = { disk, areaBytes, chain, term, counters, lockDescriptor: lock.descriptor };
  return new ShardJournal({
    id: hex(manifest.id),
    storage: volatile ? "memory" : backend,
    storageReason: `${volatile ? `${backend}: ` : ""}${reason}`,
    clock: options.clock,
    counters,
    committer: committerOf(backend, native, begin),
    areaBytes,
    segmentBytes: options.segmentBytes,
    budgetBytes: options.budget.capBytes,
    chain,
    position: recovered.active?.position ?? blockBytes,
    lock,
    events: options.events,
    ring,
  });
}

function committerOf(
  backend: Backend,
  layer: NativeLayer | undefined,
  begin: DiskStart & Pick<NativeStart, "lockDescriptor">,
): Committer {
  if (backend === "node" || backend === "buffered" || layer === undefined) {
    return new DiskCommitter(begin);
  }
  return new NativeCommitter({ ...begin, layer, backend });
}

/** There is one shard for now. More of them were made with another configuration, and one journal is not all of it. */
async function checkShards(disk: Disk, dir: string): Promise<void> {
  const names = await disk.list(`${dir}/journal`);
  const shards = names.filter((name) => /^\d+$/.test(name)).length;
  if (shards !== 1) {
    throw new ForebayError(
      "config_invalid",
      `${dir}/journal holds ${shards} shards, configured is 1; a data directory keeps the count it was made with`,
    );
  }
}

/** Names made by an earlier start that died before it synced them. */
async function syncAbove(disk: Disk, slot: string): Promise<void> {
  const kind = dirname(slot);
  const data = dirname(kind);
  await disk.syncDirectory(kind);
  await disk.syncDirectory(data);
  await disk.syncDirectory(dirname(data)).catch((error: unknown) => {
    // A parent that may be passed through but not read cannot be opened to sync it.
    if (errorCode(error) !== "EACCES") {
      throw error;
    }
  });
}

/** Errors of the system at a start in the catalogue's words; others pass. */
function startError(error: unknown, dir: string): unknown {
  if (error instanceof ForebayError) {
    return error;
  }
  const reason = error instanceof Error ? error.message : String(error);
  if (isDiskFull(error)) {
    return new ForebayError("disk_full", `${dir}: ${reason}`, { cause: error });
  }
  if (isUnwritable(error)) {
    return new ForebayError("data_unwritable", `${dir} cannot be written: ${reason}`, {
      cause: error,
    });
  }
  if (errorCode(error) !== undefined) {
    const message = `the journal in ${dir} cannot be opened: ${reason}`;
    return new ForebayError("journal_failed", message, { cause: error });
  }
  return error;
}
