import { diskError } from "../access.ts";
import { blockBytes, type DiskFile, type OpenMode } from "../types.ts";
import type { Calls, CallName } from "./calls.ts";
import type { Content } from "./content.ts";

interface FileParts {
  readonly path: string;
  readonly mode: OpenMode;
  readonly content: Content;
  readonly calls: Calls;
  readonly disk: { takeSpace(bytes: number, path: string): void };
}

export class MemoryFile implements DiskFile {
  readonly path: string;
  readonly #parts: FileParts;
  #open = true;

  constructor(parts: FileParts) {
    this.path = parts.path;
    this.#parts = parts;
  }

  read(into: Uint8Array, position: number): Promise<number> {
    return this.#call("read", { position, bytes: into.length }, (short) => {
      this.#mustBeOpen(this.#parts.mode !== "commit");
      const wanted = short && into.length > 1 ? into.length >> 1 : into.length;
      const bytes = this.#parts.content.bytes.subarray(position, position + wanted);
      into.set(bytes);
      return bytes.length;
    });
  }

  write(bytes: Uint8Array, position: number): Promise<number> {
    const { content, mode, disk, path } = this.#parts;
    const write = content.submit(bytes, position);
    return this.#call("write", { position, bytes: bytes.length }, (short) => {
      this.#mustBeOpen(mode !== "read");
      if (mode === "commit" && (position % blockBytes !== 0 || bytes.length % blockBytes !== 0)) {
        throw diskError("EINVAL", `write of ${bytes.length} at ${position} in ${path}`);
      }
      disk.takeSpace(position + bytes.length - content.size, path);
      if (short) {
        return this.#writeHalf(bytes, position);
      }
      content.complete(write);
      if (mode === "commit") {
        content.synced([write]);
      }
      return bytes.length;
    });
  }

  sync(): Promise<void> {
    const { content } = this.#parts;
    const covered = content.covered();
    return this.#parts.calls.make(
      this.#what("sync", { position: 0, bytes: 0 }),
      () => {
        this.#mustBeOpen(true);
        content.synced(covered);
      },
      () => {
        for (const write of covered) {
          write.lost = true;
        }
      },
    );
  }

  size(): Promise<number> {
    return this.#call("size", { position: 0, bytes: 0 }, () => this.#parts.content.size);
  }

  close(): Promise<void> {
    return this.#call("close", { position: 0, bytes: 0 }, () => {
      this.#mustBeOpen(true);
      this.#open = false;
    });
  }

  /** The rest of the submitted write stays among what may survive: a device may well have begun it. */
  #writeHalf(bytes: Uint8Array, position: number): number {
    const half = bytes.subarray(0, bytes.length >> 1);
    const write = this.#parts.content.submit(half, position);
    this.#parts.content.complete(write);
    if (this.#parts.mode === "commit") {
      this.#parts.content.synced([write]);
    }
    return half.length;
  }

  #mustBeOpen(allowed: boolean): void {
    if (!this.#open || !allowed) {
      throw diskError("EBADF", this.path);
    }
  }

  #what(name: CallName, range: { position: number; bytes: number }): Parameters<Calls["make"]>[0] {
    return { name, path: this.path, detail: "", ...range };
  }

  #call<T>(
    name: CallName,
    range: { position: number; bytes: number },
    effect: (short: boolean) => T,
  ): Promise<T> {
    return this.#parts.calls.make(this.#what(name, range), effect);
  }
}
