import { invariant } from "../../shared/errors/mod.ts";
import { blockBytes, isDiskFull, writeFully, type Disk, type DiskFile } from "../storage/mod.ts";
import type { Counters } from "./counters.ts";
import { preparingSuffix, segmentName } from "./layout.ts";
import { encodeSegmentHeader, type SegmentHeader } from "./segmentHeader.ts";

const zeros = new Uint8Array(1024 * 1024);

export interface PrepareOptions {
  readonly disk: Disk;
  readonly dir: string;
  readonly counters: Counters;
  /** The file system lives in memory: zero-filling would only take memory early. */
  readonly volatile: boolean;
}

/**
 * Makes a segment file: durable, under its name, all its blocks written when it resolves. Blocks that were never
 * written cost two to five times as much at the first commit. False: there was no space. No half file is left then.
 */
export async function prepareSegment(
  options: PrepareOptions,
  header: SegmentHeader,
): Promise<boolean> {
  const aside = await asideName(options, header.generation);
  return finish(options, header, async () => {
    const file = await options.disk.open(aside, "create");
    try {
      await fill(file, header.bytes, options);
      await writeHeader(file, header);
    } finally {
      await file.close();
    }
  });
}

/**
 * Takes a segment file that is needed no more out of its old name; `finishRecycled` makes it the new segment. Its blocks
 * are written already, and what they hold is free space to the new generation.
 */
export async function beginRecycled(
  options: PrepareOptions,
  from: number,
  generation: number,
): Promise<void> {
  const aside = await asideName(options, generation);
  await options.disk.rename(`${options.dir}/${segmentName(from)}`, aside);
}

/** Like `prepareSegment`, after `beginRecycled`. */
export function finishRecycled(options: PrepareOptions, header: SegmentHeader): Promise<boolean> {
  return finish(options, header, async () => {
    const { disk, dir } = options;
    const file = await disk.open(
      dir + "/" + segmentName(header.generation) + preparingSuffix,
      "update",
    );
    try {
      await writeHeader(file, header);
    } finally {
      await file.close();
    }
  });
}

/** Where the segment is made; nothing is there, nor under its name. */
async function asideName({ disk, dir }: PrepareOptions, generation: number): Promise<string> {
  const path = `${dir}/${segmentName(generation)}`;
  const aside = path + preparingSuffix;
  // Names are never reused: the rename must not replace a segment.
  invariant((await disk.stat(path)) === undefined, `${path} is a new name`);
  if ((await disk.stat(aside)) !== undefined) {
    await disk.unlink(aside);
  }
  return aside;
}

/** The file is whole and synced before it gets its name, and the name durable before it counts. */
async function finish(
  options: PrepareOptions,
  header: SegmentHeader,
  write: () => Promise<void>,
): Promise<boolean> {
  const { disk, dir, counters } = options;
  const path = `${dir}/${segmentName(header.generation)}`;
  const aside = path + preparingSuffix;
  try {
    await write();
    await disk.rename(aside, path);
  } catch (error) {
    // What cannot be removed now goes before the next try, or at the next start.
    await disk.unlink(aside).catch(() => undefined);
    if (isDiskFull(error)) {
      return false;
    }
    throw error;
  }
  await disk.syncDirectory(dir);
  counters.bytesWritten += blockBytes;
  counters.syncs += 2;
  return true;
}

async function writeHeader(file: DiskFile, header: SegmentHeader): Promise<void> {
  await writeFully(file, encodeSegmentHeader(header), 0);
  await file.sync();
}

async function fill(file: DiskFile, bytes: number, options: PrepareOptions): Promise<void> {
  // In memory the last block alone makes the file as long as it is.
  const from = options.volatile ? bytes - blockBytes : 0;
  for (let at = from; at < bytes; at += zeros.length) {
    const chunk = zeros.subarray(0, Math.min(zeros.length, bytes - at));
    await writeFully(file, chunk, at);
    options.counters.bytesWritten += chunk.length;
  }
}
