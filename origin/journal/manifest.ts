import type { Disk } from "../storage/mod.ts";
import type { Counters } from "./counters.ts";
import { corrupt } from "./damage.ts";
import { DualFile, readDual, type DualPlace } from "./dualFile.ts";

export interface ManifestValues {
  /** Generation of the first segment held. */
  readonly head: number;
  /** Generation of the segment batches may be in; 0 before the first. */
  readonly active: number;
}

export const manifestName = "manifest";
const magic = "FBYMANIF";

export function manifestPath(dir: string): string {
  return `${dir}/${manifestName}`;
}

/** What a journal's manifest says; undefined when there is none. Changes nothing.
 *
 * @throws ForebayError `journal_corrupt` | `format_unsupported`
 */
export async function readManifest(
  disk: Disk,
  dir: string,
): Promise<(ManifestValues & { readonly id: Uint8Array }) | undefined> {
  const found = await readDual({ disk, dir, name: manifestName, magic });
  if (found.state === "damaged") {
    throw corrupt(manifestPath(dir), found.why);
  }
  if (found.state === "absent") {
    return undefined;
  }
  const [head, active] = found.record.values;
  return { head, active, id: found.record.id };
}

/** The file that knows which segments there must be. */
export class Manifest {
  readonly #file: DualFile;

  private constructor(file: DualFile) {
    this.#file = file;
  }

  /** Makes the manifest of a journal that has no segment yet; durable when it resolves. */
  static async create(
    disk: Disk,
    dir: string,
    made: { id: Uint8Array; counters: Counters },
  ): Promise<Manifest> {
    const { id, counters } = made;
    const file = await DualFile.create(placeOf(disk, dir, counters), [1, 0], id);
    await disk.syncDirectory(dir);
    counters.syncs += 1;
    return new Manifest(file);
  }

  /**
   * Opens the manifest for updates; undefined when there is none.
   *
   * @throws ForebayError `journal_corrupt` | `format_unsupported`
   */
  static async open(disk: Disk, dir: string, counters: Counters): Promise<Manifest | undefined> {
    const place = placeOf(disk, dir, counters);
    const found = await readDual(place);
    if (found.state === "damaged") {
      throw corrupt(manifestPath(dir), found.why);
    }
    return found.state === "absent" ? undefined : new Manifest(await DualFile.open(place, found));
  }

  get id(): Uint8Array {
    return this.#file.id;
  }

  /** Durable. */
  get values(): ManifestValues {
    const [head, active] = this.#file.values;
    return { head, active };
  }

  /** Durable when it resolves; what is not given stays. */
  update(change: Partial<ManifestValues>): Promise<void> {
    return this.#file.update(([head, active]) => [change.head ?? head, change.active ?? active]);
  }

  sync(): Promise<void> {
    return this.#file.sync();
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

function placeOf(disk: Disk, dir: string, counters: Counters): DualPlace {
  return { disk, dir, name: manifestName, magic, counters };
}
