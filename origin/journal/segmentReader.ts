import { invariant } from "../../shared/errors/mod.ts";
import { readFully, type Disk, type DiskFile } from "../storage/mod.ts";
import { corrupt } from "./damage.ts";

const chunkBytes = 1024 * 1024;

/** Positioned reads of one segment through one buffer, which grows to the largest batch and no further. */
export class SegmentReader {
  readonly path: string;
  readonly size: number;
  readonly #file: DiskFile;
  #buffer: Uint8Array;
  #start = 0;
  #end = 0;

  private constructor(file: DiskFile, size: number, buffer: Uint8Array) {
    this.path = file.path;
    this.size = size;
    this.#file = file;
    this.#buffer = buffer;
  }

  /** @param buffer reused from one segment to the next */
  static async open(disk: Disk, path: string, buffer?: Uint8Array): Promise<SegmentReader> {
    const file = await disk.open(path, "read");
    const size = await file.size();
    return new SegmentReader(file, size, buffer ?? new Uint8Array(Math.min(size, chunkBytes)));
  }

  get buffer(): Uint8Array {
    return this.#buffer;
  }

  /**
   * `length` bytes at `position`, valid until the next call. Within the file: the caller has checked.
   *
   * @throws ForebayError `journal_corrupt` when the file shrank since it was opened
   */
  async view(position: number, length: number): Promise<Uint8Array> {
    // A length from the disk that was not checked must not become an allocation.
    invariant(position + length <= this.size, "the view lies within the segment");
    if (position < this.#start || position + length > this.#end) {
      await this.#load(position, length);
    }
    return this.#buffer.subarray(position - this.#start, position - this.#start + length);
  }

  /** What is asked for next is read again: the file may have been written to. */
  forget(): void {
    this.#end = 0;
  }

  /** What was read is durable when this resolves. */
  sync(): Promise<void> {
    return this.#file.sync();
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  async #load(position: number, length: number): Promise<void> {
    if (this.#buffer.length < length) {
      this.#buffer = new Uint8Array(length);
    }
    const wanted = Math.min(this.#buffer.length, this.size - position);
    this.#end = 0;
    const found = await readFully(this.#file, this.#buffer.subarray(0, wanted), position);
    if (found < wanted) {
      throw corrupt(this.path, `had ${this.size} bytes when opened, ended at ${position + found}`);
    }
    this.#start = position;
    this.#end = position + found;
  }
}
