import { invariant } from "../../shared/errors/mod.ts";
import { crc32c } from "../native/mod.ts";
import { blockBytes, readFully, writeFully, type Disk, type DiskFile } from "../storage/mod.ts";
import type { Counters } from "./counters.ts";
import { newerVersion } from "./damage.ts";
import {
  dualFileBytes,
  dualRecordBytes,
  formatVersion,
  preparingSuffix,
  readText,
  readU64,
  viewOf,
  writeText,
  writeU64,
} from "./layout.ts";

/** Two numbers that only rise. */
export type DualValues = readonly [number, number];

interface DualRecord {
  readonly generation: number;
  readonly values: DualValues;
  /** Journal id, 16 bytes. */
  readonly id: Uint8Array;
}

interface Placed {
  readonly record: DualRecord;
  /** 0 or 1. */
  readonly slot: number;
}

/** What lies at a path where a dual-record file may be. */
export type DualFound =
  | { readonly state: "absent" }
  | { readonly state: "damaged"; readonly why: string }
  | ({ readonly state: "valid" } & Placed);

/** Where a dual-record file is, and what makes it one. */
export interface DualPlace {
  readonly disk: Disk;
  readonly dir: string;
  readonly name: string;
  readonly magic: string;
  readonly counters: Counters;
}

const crcAt = dualRecordBytes - 4;
const writeTries = 3;

function encodeRecord(magic: string, record: DualRecord): Uint8Array {
  const bytes = new Uint8Array(dualRecordBytes);
  const view = viewOf(bytes);
  writeText(bytes, 0, magic);
  view.setUint32(8, formatVersion, true);
  writeU64(view, 16, record.generation);
  writeU64(view, 24, record.values[0]);
  writeU64(view, 32, record.values[1]);
  bytes.set(record.id, 40);
  view.setUint32(crcAt, crc32c(bytes, 0, crcAt, 0), true);
  return bytes;
}

function decodeRecord(bytes: Uint8Array, magic: string, path: string): DualRecord | undefined {
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
    values: [readU64(view, 24), readU64(view, 32)],
    id: bytes.slice(40, 56),
  };
}

/**
 * Reads the newer of the two records; changes nothing.
 *
 * @throws ForebayError `format_unsupported`, or the error of a failed call
 */
export async function readDual(place: Omit<DualPlace, "counters">): Promise<DualFound> {
  const path = `${place.dir}/${place.name}`;
  const size = await place.disk.stat(path);
  if (size === undefined) {
    return { state: "absent" };
  }
  if (size !== dualFileBytes) {
    return { state: "damaged", why: `expected ${dualFileBytes} bytes, found ${size}` };
  }
  const bytes = new Uint8Array(dualFileBytes);
  const file = await place.disk.open(path, "read");
  try {
    await readFully(file, bytes, 0);
  } finally {
    await file.close();
  }
  const [first, second] = [0, 1].flatMap((slot) => {
    const from = slot * blockBytes;
    const found = bytes.subarray(from, from + dualRecordBytes);
    const record = decodeRecord(found, place.magic, path);
    return record === undefined ? [] : [{ record, slot }];
  });
  if (first === undefined) {
    return { state: "damaged", why: "neither of its two records is valid" };
  }
  const newer =
    second !== undefined && second.record.generation > first.record.generation ? second : first;
  return { state: "valid", ...newer };
}

/**
 * A file of two records, of which the newer valid one counts. One writer; never opened with truncate. The victim of an
 * update is always the record that is not the last one known synced, so one whole record is there at any instant.
 */
export class DualFile {
  readonly #file: DiskFile;
  readonly #place: DualPlace;
  /** The record last known synced. */
  #last: Placed;
  /** Updates run one after the other. */
  #updates: Promise<void> = Promise.resolve();

  private constructor(file: DiskFile, place: DualPlace, last: Placed) {
    this.#file = file;
    this.#place = place;
    this.#last = last;
  }

  /** Opens what `readDual` found; the caller syncs it before it builds on it. */
  static async open(place: DualPlace, found: Placed): Promise<DualFile> {
    const file = await place.disk.open(`${place.dir}/${place.name}`, "update");
    return new DualFile(file, place, found);
  }

  /** Makes the file aside and renames it; its name is durable after the next sync of the directory. */
  static async create(place: DualPlace, values: DualValues, id: Uint8Array): Promise<DualFile> {
    const { disk, counters } = place;
    const path = `${place.dir}/${place.name}`;
    const aside = path + preparingSuffix;
    if ((await disk.stat(aside)) !== undefined) {
      await disk.unlink(aside);
    }
    const record = { generation: 1, values, id };
    const content = new Uint8Array(dualFileBytes);
    content.set(encodeRecord(place.magic, record));
    const file = await disk.open(aside, "create");
    try {
      await writeFully(file, content, 0);
      await file.sync();
      await disk.rename(aside, path);
    } catch (error) {
      await file.close();
      throw error;
    }
    counters.bytesWritten += content.length;
    counters.syncs += 1;
    return new DualFile(file, place, { record, slot: 0 });
  }

  get id(): Uint8Array {
    return this.#last.record.id;
  }

  /** Durable. */
  get values(): DualValues {
    return this.#last.record.values;
  }

  /**
   * Durable when it resolves. A failed write is repeated as a whole, on the same record; a sync alone never is.
   *
   * @param change gets the durable values, after the updates before this one
   */
  update(change: (values: DualValues) => DualValues): Promise<void> {
    const done = this.#updates.then(() => this.#write(change(this.values)));
    this.#updates = done.catch(() => undefined);
    return done;
  }

  async sync(): Promise<void> {
    await this.#file.sync();
    this.#place.counters.syncs += 1;
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  async #write(values: DualValues): Promise<void> {
    const { record, slot } = this.#last;
    const [first, second] = record.values;
    invariant(values[0] >= first && values[1] >= second, "the values of a dual-record file rise");
    if (values[0] === first && values[1] === second) {
      return;
    }
    const next = { generation: record.generation + 1, values, id: record.id };
    const victim = 1 - slot;
    for (let tries = 1; ; tries++) {
      try {
        await writeFully(this.#file, encodeRecord(this.#place.magic, next), victim * blockBytes);
        this.#place.counters.bytesWritten += dualRecordBytes;
        await this.sync();
        break;
      } catch (error) {
        if (tries === writeTries) {
          throw error;
        }
      }
    }
    this.#last = { record: next, slot: victim };
  }
}
