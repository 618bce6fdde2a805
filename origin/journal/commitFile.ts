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
