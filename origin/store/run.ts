import { readFully, type Disk, type DiskFile } from "../storage/mod.ts";
import { storeCorrupt } from "./bytes.ts";
import type { CatalogRun } from "./catalog.ts";
import type { Counters } from "./counters.ts";
import { decodeHeader, headerBytes, type RunHeader, type SectionPlace } from "./runHeader.ts";
import { RunIndex } from "./runIndex.ts";
import { decodeSection, sectionBytes } from "./section.ts";

/** A live run, open for reading. */
export interface Run extends CatalogRun {
  readonly path: string;
  readonly file: DiskFile;
  /** Null when it is lost: which records the run holds is then not known. */
  readonly index: RunIndex | null;
  readonly header: RunHeader;
}

/** A chunk of a live run, by its number in the run's index. */
export interface ChunkRef {
  readonly run: Run;
  readonly index: number;
}

export function runName(run: number): string {
  return `${run.toString(16).padStart(16, "0")}.run`;
}

export const runNamePattern: RegExp = /^[0-9a-f]{16}\.run$/;

interface OpenContext {
  readonly disk: Disk;
  readonly dir: string;
  readonly storeId: Uint8Array;
  readonly counters: Counters;
}

/**
 * Opens a run that the catalog names, and reads its sections.
 *
 * @throws ForebayError `store_corrupt` when its state is lost or it is another's | `format_unsupported`
 */
export async function openRun(
  context: OpenContext,
  named: CatalogRun,
): Promise<{ readonly run: Run; readonly state: Uint8Array }> {
  const { disk, dir, counters } = context;
  const path = `${dir}/${runName(named.run)}`;
  if ((await disk.stat(path)) === undefined) {
    throw storeCorrupt(`${path} is not there, though the catalog names it`);
  }
  const file = await disk.open(path, "read");
  try {
    const header = await readHeader(context, file, named);
    const index = await readSection(file, header.index, counters);
    const state = await readSection(file, header.state, counters);
    if (state === null) {
      const { position, bytes } = header.state;
      const where = `${path}, state at ${position} of ${bytes} bytes`;
      throw storeCorrupt(`${where}: a page is damaged in both copies, so streams would be missing`);
    }
    counters.damagedIndexes += index === null ? 1 : 0;
    const opened = index === null ? null : new RunIndex(index);
    return { run: { ...named, path, file, header, index: opened }, state };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** The header in front, or the one at the end. */
async function readHeader(
  { storeId, counters }: OpenContext,
  file: DiskFile,
  { run, fileBytes }: CatalogRun,
): Promise<RunHeader> {
  for (const position of [0, fileBytes - headerBytes]) {
    const block = new Uint8Array(headerBytes);
    counters.bytesRead += await readFully(file, block, position);
    counters.bytesHashed += headerBytes;
    const header = decodeHeader(block, file.path);
    if (header === null) {
      counters.repairedPages += 1;
      continue;
    }
    if (header.run !== run || Buffer.compare(header.storeId, storeId) !== 0) {
      throw storeCorrupt(`${file.path} is run ${header.run}, or another store's, not run ${run}`);
    }
    return header;
  }
  throw storeCorrupt(`${file.path} has no sound header, neither in front nor at ${fileBytes}`);
}

/** Null when it is lost. */
export async function readSection(
  file: DiskFile,
  { position, bytes }: SectionPlace,
  counters: Counters,
): Promise<Uint8Array | null> {
  const both = new Uint8Array(sectionBytes(bytes));
  counters.bytesRead += await readFully(file, both, position);
  counters.bytesHashed += both.length;
  const section = decodeSection(both, bytes);
  counters.repairedPages += section.repairedPages;
  return section.bytes;
}
