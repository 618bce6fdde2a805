import { crc32c } from "../native/mod.ts";
import { readFully, writeFully, type Disk, type DiskFile } from "../storage/mod.ts";
import { blockBytes } from "../storage/mod.ts";
import type { Counters } from "./counters.ts";
import { corrupt, newerVersion } from "./damage.ts";
import {
  formatVersion,
  manifestBytes,
  manifestRecordBytes,
  preparingSuffix,
  readText,
  readU64,
  viewOf,
  writeText,
  writeU64,
} from "./layout.ts";

export interface ManifestValues {
  /** Generation of the first segment held. */
  readonly head: number;
  /** Generation of the segment batches may be in; 0 before the first. */
  readonly active: number;
}

interface ManifestRecord extends ManifestValues {
  readonly generation: number;
  readonly id: Uint8Array;
}

const magic = "FBYMANIF";
const crcAt = manifestRecordBytes - 4;
const writeTries = 3;

function encodeRecord(record: ManifestRecord): Uint8Array {
  const bytes = new Uint8Array(manifestRecordBytes);
  const view = viewOf(bytes);
  writeText(bytes, 0, magic);
  view.setUint32(8, formatVersion, true);
  writeU64(view, 16, record.generation);
  writeU64(view, 24, record.head);
  writeU64(view, 32, record.active);
  bytes.set(record.id, 40);
  view.setUint32(crcAt, crc32c(bytes, 0, crcAt, 0), true);
  return bytes;
}

function decodeRecord(bytes: Uint8Array, path: string): ManifestRecord | undefined {
  const view = viewOf(bytes);
  const valid =
    readText(bytes, 0, magic.length) === magic &&
    view.getUint32(crcAt, true) === crc32c(bytes, 0, crcAt, 0);
  if (!valid) {
    return undefined;
  }
  const version = view.getUint32(8, true);
  if (version !== formatVersion) {
    throw newerVersion(path, version);
  }
  return {
    generation: readU64(view, 16),
    head: readU64(view, 24),
    active: readU64(view, 32),
    id: bytes.slice(40, 56),
  };
}

/** The dual-record file that knows which segments there must be. One writer. */
export class Manifest {
  readonly #file: DiskFile;
  readonly #counters: Counters;
  /** The record last known synced, and its place (0 or 1). */
  #record: ManifestRecord;
  #slot: number;

  constructor(file: DiskFile, counters: Counters, found: { record: ManifestRecord; slot: number }) {
    this.#file = file;
    this.#counters = counters;
    this.#record = found.record;
    this.#slot = found.slot;
  }

  get id(): Uint8Array {
    return this.#record.id;
  }

  get values(): ManifestValues {
    return this.#record;
  }

  /** Durable when it resolves. A failed write is repeated as a whole; a sync alone never is. */
  async update(values: ManifestValues): Promise<void> {
    const { id, generation } = this.#record;
    const record = { ...values, id, generation: generation + 1 };
    const victim = 1 - this.#slot;
    for (let tries = 1; ; tries++) {
      try {
        await writeFully(this.#file, encodeRecord(record), victim * blockBytes);
        this.#counters.bytesWritten += manifestRecordBytes;
        await this.sync();
        break;
      } catch (error) {
        if (tries === writeTries) {
          throw error;
        }
      }
    }
    this.#record = record;
    this.#slot = victim;
  }

  async sync(): Promise<void> {
    await this.#file.sync();
    this.#counters.syncs += 1;
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

export function manifestPath(dir: string): string {
  return `${dir}/manifest`;
}

/** Makes the manifest of a journal that has no segment yet; durable when it resolves. */
export async function createManifest(
  disk: Disk,
  dir: string,
  id: Uint8Array,
  counters: Counters,
): Promise<Manifest> {
  const path = manifestPath(dir);
  const aside = path + preparingSuffix;
  const record = { generation: 1, head: 1, active: 0, id };
  const content = new Uint8Array(manifestBytes);
  content.set(encodeRecord(record));
  const file = await disk.open(aside, "create");
  await writeFully(file, content, 0);
  await file.sync();
  await disk.rename(aside, path);
  await disk.syncDirectory(dir);
  counters.bytesWritten += content.length;
  counters.syncs += 2;
  return new Manifest(file, counters, { record, slot: 0 });
}

/**
 * Opens the manifest; undefined when there is none.
 *
 * @throws ForebayError `journal_corrupt` | `format_unsupported`
 */
export async function openManifest(
  disk: Disk,
  dir: string,
  counters: Counters,
): Promise<Manifest | undefined> {
  const path = manifestPath(dir);
  const size = await disk.stat(path);
  if (size === undefined) {
    return undefined;
  }
  if (size !== manifestBytes) {
    throw corrupt(path, `expected ${manifestBytes} bytes, found ${size}`);
  }
  const file = await disk.open(path, "update");
  try {
    const bytes = new Uint8Array(manifestBytes);
    await readFully(file, bytes, 0);
    return new Manifest(file, counters, newestRecord(bytes, path));
  } catch (error) {
    await file.close();
    throw error;
  }
}

function newestRecord(bytes: Uint8Array, path: string): { record: ManifestRecord; slot: number } {
  const found = [0, 1].flatMap((slot) => {
    const from = slot * blockBytes;
    const record = decodeRecord(bytes.subarray(from, from + manifestRecordBytes), path);
    return record === undefined ? [] : [{ record, slot }];
  });
  const [first, second] = found;
  if (first === undefined) {
    throw corrupt(path, "neither of its two records is valid");
  }
  return second !== undefined && second.record.generation > first.record.generation
    ? second
    : first;
}
