import type { Disk } from "../storage/mod.ts";
import type { Counters } from "./counters.ts";
import { DualFile, readDual, type DualFound, type DualPlace, type DualValues } from "./dualFile.ts";

export interface WatermarkValues {
  /** LSN: entries up to it are needed no more. */
  readonly trimmed: number;
  /** Generation of the first segment that holds an entry above it. */
  readonly head: number;
}

export const watermarkName = "watermark";
const magic = "FBYWATER";
const nothingTrimmed: WatermarkValues = { trimmed: 0, head: 1 };

/** What a journal's watermark says, and why it is not to be believed. Changes nothing. */
export async function readWatermark(
  disk: Disk,
  dir: string,
): Promise<WatermarkValues & { readonly damage: string | null }> {
  const found = await readDual({ disk, dir, name: watermarkName, magic });
  return { ...valuesOf(found), damage: found.state === "damaged" ? found.why : null };
}

/**
 * The trimming mark. Losing it costs a second replay of what was trimmed, never data, so a damaged one is set aside
 * and counts as absent.
 */
export class Watermark {
  readonly #place: DualPlace;
  readonly #found: DualFound;
  #file: DualFile | undefined;

  private constructor(place: DualPlace, found: DualFound) {
    this.#place = place;
    this.#found = found;
  }

  /** Reads it; changes nothing. */
  static async open(disk: Disk, dir: string, counters: Counters): Promise<Watermark> {
    const place = { disk, dir, name: watermarkName, magic, counters };
    const watermark = new Watermark(place, await readDual(place));
    if (watermark.#found.state === "valid") {
      watermark.#file = await DualFile.open(place, watermark.#found);
    }
    return watermark;
  }

  /** Durable. */
  get values(): WatermarkValues {
    if (this.#file === undefined) {
      return nothingTrimmed;
    }
    const [trimmed, head] = this.#file.values;
    return { trimmed, head };
  }

  /** Why what was found was not believed; null when there was nothing wrong. */
  get damage(): string | null {
    return this.#found.state === "damaged" ? this.#found.why : null;
  }

  /** Keeps a damaged file under a name that nothing has, and puts a valid one in its place. */
  async repair(id: Uint8Array): Promise<void> {
    const { disk, dir } = this.#place;
    const path = `${dir}/${watermarkName}`;
    await disk.rename(path, await freeName(disk, `${path}.corrupt`));
    this.#file = await this.#create([0, 1], id);
  }

  /** Durable when it resolves. */
  async advance(values: WatermarkValues, id: Uint8Array): Promise<void> {
    if (this.#file === undefined) {
      this.#file = await this.#create([values.trimmed, values.head], id);
      return;
    }
    await this.#file.update(([trimmed, head]) => [
      Math.max(trimmed, values.trimmed),
      Math.max(head, values.head),
    ]);
  }

  async sync(): Promise<void> {
    await this.#file?.sync();
  }

  async close(): Promise<void> {
    await this.#file?.close();
  }

  /** Durable under its name when it resolves; a mark that could vanish again is none. */
  async #create(values: DualValues, id: Uint8Array): Promise<DualFile> {
    const { disk, dir, counters } = this.#place;
    const file = await DualFile.create(this.#place, values, id);
    try {
      await disk.syncDirectory(dir);
    } catch (error) {
      await file.close();
      throw error;
    }
    counters.syncs += 1;
    return file;
  }
}

function valuesOf(found: DualFound): WatermarkValues {
  if (found.state !== "valid") {
    return nothingTrimmed;
  }
  const [trimmed, head] = found.record.values;
  return { trimmed, head };
}

/** `path`, or `path` with the first number that gives a new name. */
async function freeName(disk: Disk, path: string): Promise<string> {
  for (let n = 1; ; n++) {
    const name = n === 1 ? path : `${path}.${n}`;
    if ((await disk.stat(name)) === undefined) {
      return name;
    }
  }
}
