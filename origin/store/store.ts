import { ForebayError } from "../../shared/errors/mod.ts";
import { type Lsn, lsn } from "../../shared/ids/mod.ts";
import type { Clock, Random } from "../../shared/ports/mod.ts";
import { limits } from "../../shared/limits.ts";
import {
  isDiskFull,
  isUnwritable,
  makeDirectories,
  type Disk,
  type DirectoryLock,
} from "../storage/mod.ts";
import { Arenas } from "./arenas.ts";
import { storeCorrupt } from "./bytes.ts";
import {
  type Catalog,
  loadCatalog,
  nextCatalogName,
  publishCatalog,
  removeFile,
} from "./catalog.ts";
import { CatalogKeeper } from "./catalogKeeper.ts";
import { Checkpointer } from "./checkpointer.ts";
import { type Counters, newCounters } from "./counters.ts";
import { Merger } from "./merger.ts";
import { Records } from "./records.ts";
import { openRun, runName, runNamePattern } from "./run.ts";
import { RunSet } from "./runSet.ts";
import { mergeState } from "./stateSection.ts";
import type { CheckpointOwner, RecordStore, StateEntry, StoreStats } from "./types.ts";

export interface StoreOptions {
  /** The data directory; made if it is missing. The store lies in `store` of it. */
  readonly dir: string;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly bytesMax?: number;
  readonly arenaBytesMax?: number;
  readonly cacheBytesMax?: number;
  readonly checkpointAgeMs?: number;
  readonly checkpointJournalBytes?: number;
  /** Told of each failed checkpoint, and with null of the first success after one. */
  readonly onFailed?: (error: unknown) => void;
}

const lockWaitMs = 5000;

/**
 * Takes the store's lock and reads its catalog, and of each run the index and the state.
 *
 * @throws ForebayError `data_locked` | `store_corrupt` | `format_unsupported` | `disk_full` | `store_failed`
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { disk } = options;
  const dir = `${options.dir}/store`;
  let lock: DirectoryLock | undefined;
  try {
    await makeDirectories(disk, dir);
    lock = await disk.lock(dir, lockWaitMs);
    return await load({ ...options, dir }, lock);
  } catch (error) {
    await lock?.release();
    throw startError(error, dir);
  }
}

function startError(error: unknown, dir: string): unknown {
  if (error instanceof ForebayError) {
    return error;
  }
  const reason = error instanceof Error ? error.message : String(error);
  const code = isDiskFull(error)
    ? "disk_full"
    : isUnwritable(error)
      ? "data_unwritable"
      : "store_failed";
  return new ForebayError(code, `the store in ${dir} cannot be opened: ${reason}`, {
    cause: error,
  });
}

async function load(options: StoreOptions, lock: DirectoryLock): Promise<Store> {
  const { disk, dir, random } = options;
  const counters = newCounters();
  const found = await loadCatalog(disk, dir);
  counters.bytesRead += found?.bytesRead ?? 0;
  counters.bytesHashed += found?.bytesRead ?? 0;
  counters.repairedPages += found?.repairedPages ?? 0;
  const first = {
    storeId: random.bytes(16),
    journalId: "",
    checkpointLsn: 0,
    nextRun: 1,
    runs: [],
  };
  const catalog: Catalog = found?.catalog ?? first;
  const runs = new RunSet(counters, options.cacheBytesMax ?? limits.storeCacheBytes);
  const state: { bytes: Uint8Array; what: string }[] = [];
  try {
    for (const named of catalog.runs) {
      const opened = await openRun({ disk, dir, storeId: catalog.storeId, counters }, named);
      runs.add(opened.run);
      state.push({ bytes: opened.state, what: `the state of ${opened.run.path}` });
    }
  } catch (error) {
    await runs.close();
    throw error;
  }
  return new Store({ options, lock, counters, catalog, runs, state });
}

interface Parts {
  readonly options: StoreOptions;
  readonly lock: DirectoryLock;
  readonly counters: Counters;
  readonly catalog: Catalog;
  readonly runs: RunSet;
  readonly state: readonly { readonly bytes: Uint8Array; readonly what: string }[];
}

/**
 * The records of all streams and the state that goes with them, up to the checkpoint; what came later is in the
 * journal. Opened, then its state given out, then the journal's entries above the checkpoint replayed, then started.
 */
export class Store {
  readonly #parts: Parts;
  readonly #arenas: Arenas = new Arenas();
  readonly #records: Records;
  #state: Parts["state"];
  #checkpointer: Checkpointer | null = null;
  #merger: Merger | null = null;
  #failed: string | null = null;
  /** The highest LSN replayed, or held by the runs. */
  #replayed: number;

  constructor(parts: Parts) {
    const { options, runs, catalog } = parts;
    this.#parts = parts;
    this.#state = parts.state;
    this.#replayed = catalog.checkpointLsn;
    this.#records = new Records(this.#arenas, runs, {
      arenaBytesMax: options.arenaBytesMax ?? limits.arenaBytes,
      bytesMax: options.bytesMax ?? limits.storeBytesMax,
    });
  }

  get records(): RecordStore {
    return this.#records;
  }

  /** S: the journal's entries up to it are in the runs. */
  get checkpointLsn(): Lsn {
    return lsn(this.#checkpointer?.checkpointLsn ?? this.#parts.catalog.checkpointLsn);
  }

  /** The newest value of every key the runs hold, sorted by kind, then key. Once: it is not kept. */
  *state(): Generator<StateEntry> {
    for (const entry of mergeState(this.#state)) {
      if (entry.value !== null) {
        yield entry;
      }
    }
    this.#state = [];
  }

  /**
   * Whether a recovered entry is to be applied: the runs hold those up to the checkpoint.
   *
   * @throws ForebayError `store_corrupt`, when entries between are missing
   */
  replays(entry: Lsn): boolean {
    if (entry <= this.#parts.catalog.checkpointLsn) {
      return false;
    }
    if (entry !== this.#replayed + 1) {
      const { dir } = this.#parts.options;
      const what = `the journal begins at LSN ${entry}, but ${dir} holds entries up to ${this.#replayed} only`;
      throw storeCorrupt(what);
    }
    this.#replayed = entry;
    return true;
  }

  /**
   * After replay: from here on checkpoints are made.
   *
   * @param replaced the journal is a new one, begun because the one before was damaged and set aside: the runs go on with it
   * @throws ForebayError `store_corrupt`, when the journal is not the one the runs were made from; nothing is changed
   */
  async start(owner: CheckpointOwner, replaced: boolean): Promise<void> {
    const { options, counters, runs } = this.#parts;
    const catalog = replaced ? await this.#goOnWith(owner) : this.#parts.catalog;
    checkJournal(owner, catalog, options.dir);
    await this.#removeLeftovers();
    const onFailed = (error: unknown): void => this.#onFailed(error);
    const keeper = new CatalogKeeper(options.disk, options.dir, counters, catalog);
    const merger = new Merger({ ...options, counters, runs, keeper, onFailed });
    const checkpointer = new Checkpointer(
      {
        ...options,
        counters,
        arenas: this.#arenas,
        runs,
        keeper,
        onCheckpoint: () => merger.look(),
        limits: {
          ageMsMax: options.checkpointAgeMs ?? limits.checkpointAgeMs,
          journalBytesMax: options.checkpointJournalBytes ?? limits.checkpointJournalBytes,
        },
        onFailed,
      },
      owner,
    );
    this.#checkpointer = checkpointer;
    this.#merger = merger;
    this.#records.onArenaFull = () => checkpointer.close();
    checkpointer.onDurable();
    merger.look();
  }

  /** After each durable advance of the journal. */
  onDurable(): void {
    this.#checkpointer?.onDurable();
  }

  /** Gives up a checkpoint that is being made, closes the files and releases the lock. */
  async close(): Promise<void> {
    this.#records.onArenaFull = null;
    await this.#checkpointer?.stop();
    await this.#merger?.stop();
    await this.#parts.runs.close();
    await this.#parts.lock.release();
  }

  stats(): StoreStats {
    const { counters, runs } = this.#parts;
    return {
      ...counters,
      checkpointLsn: this.checkpointLsn,
      runs: runs.runs.length,
      runBytes: runs.fileBytes,
      arenaBytes: this.#arenas.bytesHeld,
      cachedBytes: runs.cachedBytes,
      failed: this.#failed,
    };
  }

  /** The runs keep what they have of the journal before; of this one they have nothing. */
  async #goOnWith({ journal }: CheckpointOwner): Promise<Catalog> {
    const { options, counters, catalog } = this.#parts;
    const next = { ...catalog, journalId: journal.id, checkpointLsn: 0 };
    counters.bytesWritten += await publishCatalog(options.disk, options.dir, next);
    return next;
  }

  #onFailed(error: unknown): void {
    this.#failed = error === null ? null : error instanceof Error ? error.message : String(error);
    this.#parts.options.onFailed?.(error);
  }

  /** What a crash left behind: runs that no catalog names, and a catalog that never came to be one. */
  async #removeLeftovers(): Promise<void> {
    const { options, catalog } = this.#parts;
    const { disk, dir } = options;
    const named = new Set(catalog.runs.map(({ run }) => runName(run)));
    for (const name of await disk.list(dir)) {
      if (name === nextCatalogName || (runNamePattern.test(name) && !named.has(name))) {
        await removeFile(disk, `${dir}/${name}`);
      }
    }
  }
}

/** A catalog and a journal that do not belong together would give streams with holes. */
function checkJournal({ journal }: CheckpointOwner, catalog: Catalog, dir: string): void {
  const { journalId, checkpointLsn } = catalog;
  const { id, trimmed, reserved } = journal;
  if (journalId !== "" && journalId !== id) {
    throw storeCorrupt(`the runs in ${dir} were made from journal ${journalId}, this one is ${id}`);
  }
  if (checkpointLsn > reserved) {
    throw storeCorrupt(
      `the runs in ${dir} end at LSN ${checkpointLsn}, the journal at ${reserved}`,
    );
  }
  if (trimmed > checkpointLsn) {
    throw storeCorrupt(
      `the journal was trimmed to LSN ${trimmed}, ${dir} ends at ${checkpointLsn}`,
    );
  }
}
