import { invariant } from "../../shared/errors/mod.ts";
import { writeFully, type Disk, type DiskFile } from "../storage/mod.ts";
import type { Counters } from "./counters.ts";

/** The active segment's file: whatever `write` resolved for is on the device. Writes may overlap. */
export class CommitFile {
  readonly #file: DiskFile;
  readonly #direct: boolean;
  readonly #counters: Counters;

  private constructor(file: DiskFile, direct: boolean, counters: Counters) {
    this.#file = file;
    this.#direct = direct;
    this.#counters = counters;
  }

  static async open(
    disk: Disk,
    path: string,
    direct: boolean,
    counters: Counters,
  ): Promise<CommitFile> {
    const file = await disk.open(path, direct ? "commit" : "update");
    return new CommitFile(file, direct, counters);
  }

  get path(): string {
    return this.#file.path;
  }

  get isSystemFile(): boolean {
    return this.#file.descriptor !== undefined;
  }

  /** The system's descriptor, where the disk has such. */
  get descriptor(): number {
    invariant(this.#file.descriptor !== undefined, `${this.path} is a file of the system`);
    return this.#file.descriptor;
  }

  async write(blocks: Uint8Array, position: number): Promise<void> {
    this.#counters.bytesWritten += blocks.length;
    this.#counters.syncs += 1;
    await writeFully(this.#file, blocks, position);
    if (!this.#direct) {
      await this.#file.sync();
    }
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
