import { ForebayError } from "../../shared/errors/mod.ts";
import type { NativeLayer } from "../native/mod.ts";
import {
  blockBytes,
  errorCode,
  isDiskFull,
  isUnsupported,
  writeFully,
  type Disk,
  type Space,
} from "../storage/mod.ts";
import { Batch } from "./batch.ts";
import { CommitFile } from "./commitFile.ts";
import { newCounters } from "./counters.ts";
import { NativeCommitter } from "./nativeCommitter.ts";

/** How batches come to be durable; see DESIGN, Native layer. */
export type Backend = "uring" | "threads" | "node" | "buffered";
export type StorageChoice = "auto" | Backend;

export interface Chosen {
  readonly backend: Backend;
  /** Why it is this one: what was tried, and what was in the way of the better ones. */
  readonly reason: string;
}

export interface Probe {
  readonly disk: Disk;
  readonly dir: string;
  readonly wanted: StorageChoice;
  readonly native: NativeLayer | undefined;
  /** Why there is no `native`. */
  readonly nativeAbsence: string | undefined;
  readonly space: Space;
}

export const probeName = "probe";

/** Refusals that say "not here", and not "this disk is broken". */
const refusals: ReadonlySet<string | undefined> = new Set([
  "EPERM",
  "ENOSYS",
  "ENOMEM",
  "EINVAL",
  "EOPNOTSUPP",
]);

/**
 * Finds out by doing: writes and syncs a scratch file through each backend, best first, because some file systems refuse
 * the open, others only the write, and containers refuse io_uring.
 *
 * @throws ForebayError `storage_unavailable` when the one wanted is not to be had
 */
export async function chooseStorage(probe: Probe): Promise<Chosen> {
  const { wanted, disk, dir } = probe;
  const path = `${dir}/${probeName}`;
  const file = await disk.open(path, "create");
  try {
    await writeFully(file, new Uint8Array(blockBytes), 0);
    return await firstThatWorks(probe, path);
  } catch (error) {
    if (isDiskFull(error) && wanted === "auto") {
      // A full disk answers nothing; the first commit decides.
      return { backend: "node", reason: "the disk is full: nothing faster could be tried" };
    }
    throw error;
  } finally {
    await file.close();
    await disk.unlink(path);
  }
}

async function firstThatWorks(probe: Probe, path: string): Promise<Chosen> {
  const { wanted, space } = probe;
  const on = `${space.fileSystem}${space.volatile ? ", which lives in memory" : ""}`;
  if (wanted === "buffered") {
    return { backend: wanted, reason: `configured, on ${on}` };
  }
  const obstacles: string[] = [];
  const file = await openDirect(probe, path, obstacles);
  try {
    const candidates = wanted === "auto" ? (["uring", "threads", "node"] as const) : [wanted];
    for (const backend of file === undefined ? [] : candidates) {
      const obstacle = backend === "node" ? undefined : await tryNative(probe, file, backend);
      if (obstacle === undefined) {
        const why = wanted === "auto" ? "probed" : "configured";
        return { backend, reason: [`${why}, on ${on}`, ...obstacles].join("; ") };
      }
      obstacles.push(obstacle);
    }
  } finally {
    await file?.close();
  }
  if (wanted !== "auto") {
    throw new ForebayError(
      "storage_unavailable",
      `storage = ${wanted} cannot be had in ${probe.dir} (${on}): ${obstacles.join("; ")}`,
    );
  }
  return { backend: "buffered", reason: [`probed, on ${on}`, ...obstacles].join("; ") };
}

/** The scratch file past the page cache, after a write to it; undefined where that is refused. */
async function openDirect(
  { disk }: Probe,
  path: string,
  obstacles: string[],
): Promise<CommitFile | undefined> {
  let file: CommitFile | undefined;
  try {
    file = await CommitFile.open(disk, path, true, newCounters());
    await file.write(disk.allocate(blockBytes), 0);
    return file;
  } catch (error) {
    await file?.close();
    if (isUnsupported(error)) {
      obstacles.push(`no writes past the page cache: ${textOf(error)}`);
      return undefined;
    }
    throw error;
  }
}

/** What is in the way of a native backend; undefined when a batch became durable through it. */
async function tryNative(
  { native, nativeAbsence }: Probe,
  file: CommitFile | undefined,
  backend: "uring" | "threads",
): Promise<string | undefined> {
  if (native === undefined) {
    return `${backend}: ${nativeAbsence ?? "no native layer"}`;
  }
  if (file?.isSystemFile !== true) {
    return `${backend}: not a disk of this machine`;
  }
  try {
    await writeOnce({ native, backend, file });
    return undefined;
  } catch (error) {
    if (refusals.has(errorCode(error))) {
      return `${backend}: ${textOf(error)}`;
    }
    throw error;
  }
}

interface NativeTry {
  readonly native: NativeLayer;
  readonly backend: "uring" | "threads";
  readonly file: CommitFile;
}

async function writeOnce({ native, backend, file }: NativeTry): Promise<void> {
  const committer = new NativeCommitter({
    layer: native,
    backend,
    areaBytes: blockBytes,
    chain: { seq: 0, term: 0, lsn: 0, crc: 0 },
    term: 0,
    counters: newCounters(),
  });
  try {
    await new Promise<void>((resolve, reject) => {
      committer.serve({ onAdvance: () => resolve(), onFailed: reject }, () => undefined);
      const area = committer.memory.subarray(0, blockBytes);
      const place = { generation: 0, position: blockBytes };
      committer.submit(new Batch(area, place, { firstLsn: 0, limit: 0, flags: 0 }), file, 0);
    });
    await committer.settled();
  } finally {
    committer.close();
  }
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
