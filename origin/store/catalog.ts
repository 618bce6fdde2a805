import { errorCode, readFully, type Disk, writeFully } from "../storage/mod.ts";
import { ByteReader, ByteWriter, storeCorrupt } from "./bytes.ts";
import { checkVersion, storeVersion } from "./runHeader.ts";
import { decodeSection, encodePages, pageBytes } from "./section.ts";

/** The durable list of live runs, and up to where they hold the journal. FORMAT.md draws the file. */
export interface Catalog {
  /** 16 bytes. */
  readonly storeId: Uint8Array;
  readonly journalId: string;
  /** S: every entry with an LSN up to it is in the runs. */
  readonly checkpointLsn: number;
  /** The next run gets this number or a higher one. */
  readonly nextRun: number;
  /** Oldest first. */
  readonly runs: readonly CatalogRun[];
}

export interface CatalogRun {
  readonly run: number;
  readonly lane: number;
  readonly fileBytes: number;
  readonly payloadBytes: number;
}

const magic = "FBCAT\0\0\0";
const lanes = 1;
const encoder = new TextEncoder();
const decoder = new TextDecoder("latin1");

export const catalogName = "catalog";
export const nextCatalogName = "catalog.new";

function encode(catalog: Catalog): Uint8Array {
  const to = new ByteWriter();
  to.bytes(encoder.encode(magic));
  to.u32(storeVersion);
  to.u32(lanes);
  to.bytes(catalog.storeId);
  to.text(catalog.journalId);
  to.f64(catalog.checkpointLsn);
  to.f64(catalog.nextRun);
  to.u32(catalog.runs.length);
  for (const { run, lane, fileBytes, payloadBytes } of catalog.runs) {
    to.f64(run);
    to.u32(lane);
    to.f64(fileBytes);
    to.f64(payloadBytes);
  }
  return to.finish();
}

function decode(bytes: Uint8Array, path: string): Catalog {
  const from = new ByteReader(bytes, path);
  if (decoder.decode(from.bytes(8)) !== magic) {
    throw storeCorrupt(`${path} is no catalog`);
  }
  checkVersion(from.u32(), path);
  const found = from.u32();
  if (found !== lanes) {
    throw storeCorrupt(`${path} is of a store with ${found} lanes, this one has ${lanes}`);
  }
  const storeId = from.bytes(16).slice();
  const journalId = from.text();
  const checkpointLsn = from.count();
  const nextRun = from.count();
  const runs: CatalogRun[] = [];
  for (let left = from.u32(); left > 0; left--) {
    const run = from.count();
    const lane = from.u32();
    runs.push({ run, lane, fileBytes: from.count(), payloadBytes: from.count() });
  }
  return { storeId, journalId, checkpointLsn, nextRun, runs };
}

/** What the catalog file says; null when there is none. `bytesRead` of it, and pages taken from the second copy. */
export async function loadCatalog(
  disk: Disk,
  dir: string,
): Promise<{ catalog: Catalog; bytesRead: number; repairedPages: number } | null> {
  const path = `${dir}/${catalogName}`;
  let file;
  try {
    file = await disk.open(path, "read");
  } catch (error) {
    if (errorCode(error) === "ENOENT") {
      return null;
    }
    throw error;
  }
  try {
    const both = new Uint8Array(await file.size());
    const bytesRead = await readFully(file, both, 0);
    const length = (both.length / 2 / pageBytes) * (pageBytes - 4);
    if (length === 0 || !Number.isInteger(length) || bytesRead < both.length) {
      throw storeCorrupt(`${path} has ${both.length} bytes, which no catalog has`);
    }
    const { bytes, repairedPages } = decodeSection(both, length);
    if (bytes === null) {
      throw storeCorrupt(`${path} is damaged in both copies of a page`);
    }
    return { catalog: decode(bytes, path), bytesRead, repairedPages };
  } finally {
    await file.close();
  }
}

/** Puts `catalog` in the place of the one there is, whole or not at all, durably. Returns the bytes written. */
export async function publishCatalog(disk: Disk, dir: string, catalog: Catalog): Promise<number> {
  const aside = `${dir}/${nextCatalogName}`;
  await removeFile(disk, aside);
  const pages = encodePages(encode(catalog));
  const file = await disk.open(aside, "create");
  try {
    await writeFully(file, pages, 0);
    await writeFully(file, pages, pages.length);
    await file.sync();
  } finally {
    await file.close();
  }
  await disk.rename(aside, `${dir}/${catalogName}`);
  await disk.syncDirectory(dir);
  return 2 * pages.length;
}

/** A file that may not be there. */
export async function removeFile(disk: Disk, path: string): Promise<void> {
  try {
    await disk.unlink(path);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") {
      throw error;
    }
  }
}
