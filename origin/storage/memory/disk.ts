import { dirname } from "node:path";
import { ForebayError, invariant } from "../../../shared/errors/mod.ts";
import type { Random } from "../../../shared/ports/mod.ts";
import { diskError } from "../access.ts";
import type { DirectoryLock, Disk, DiskFile, OpenMode, Space } from "../types.ts";
import { Calls, type CallName, type Observer, type WaitingCall } from "./calls.ts";
import { Content } from "./content.ts";
import { MemoryFile } from "./file.ts";
import { movedDirectory, movedFile, Names, type Entry } from "./names.ts";

export interface MemoryDiskOptions {
  /** False: files cannot be opened for "commit" (EINVAL), as on some file systems. Default true. */
  readonly direct?: boolean;
  /** The file system calls itself one that lives in memory. Default false. */
  readonly volatile?: boolean;
  /** All files together hold at most this; beyond it ENOSPC. Default: no bound. */
  readonly capacityBytes?: number;
  /** Calls wait in `waiting` until released. Default false: each takes effect at once. */
  readonly stepped?: boolean;
  readonly observer?: Observer;
  /** Where `allocate` takes its memory from. Default: new memory each time. */
  readonly allocate?: (bytes: number) => Uint8Array;
}

/**
 * A disk in memory that knows what a real one promises and no more. `crash` gives the disk a machine
 * would find after losing power at this moment: synced bytes and names survive, of everything else
 * (writes in flight included) a random part, in sectors of 512 bytes and single name changes.
 */
export class MemoryDisk implements Disk {
  /** Change it to fill the disk or to make space. */
  capacityBytes: number;
  readonly #options: MemoryDiskOptions;
  readonly #names: Names;
  readonly #calls: Calls;
  readonly #locked = new Set<string>();

  constructor(options: MemoryDiskOptions = {}, entries: ReadonlyMap<string, Entry> = new Map()) {
    this.#options = options;
    this.capacityBytes = options.capacityBytes ?? Infinity;
    this.#names = new Names(entries);
    this.#calls = new Calls(options.stepped ?? false, options.observer);
  }

  set observer(observer: Observer | undefined) {
    this.#calls.observer = observer;
  }

  /** Files can be opened for "commit". */
  get direct(): boolean {
    return this.#options.direct !== false;
  }

  /** Calls that have not resolved yet, oldest first. Always empty unless stepped. */
  get waiting(): readonly WaitingCall[] {
    return this.#calls.waiting;
  }

  /** Content of every file by path, as programs see it now. Not copies. */
  files(): Map<string, Uint8Array> {
    const files = new Map<string, Uint8Array>();
    for (const [path, entry] of this.#names.visible) {
      if (entry !== "directory") {
        files.set(path, entry.bytes);
      }
    }
    return files;
  }

  /**
   * @param survival chance of each unsynced sector and name to survive: 0 the least that is promised,
   *   1 everything that was ever submitted
   */
  crash(random: Random, survival = 0.5, options: MemoryDiskOptions = {}): MemoryDisk {
    return new MemoryDisk(options, this.#names.survivor(random, survival));
  }

  open(path: string, mode: OpenMode): Promise<DiskFile> {
    if (mode === "create") {
      return this.#create(path);
    }
    return this.#call("open", path, mode, () => {
      const entry = this.#entry(path);
      if (entry === "directory") {
        throw diskError("EISDIR", `open ${path}`);
      }
      if (mode === "commit" && !this.direct) {
        throw diskError("EINVAL", `open ${path} past the page cache`);
      }
      return new MemoryFile({ path, mode, content: entry, calls: this.#calls, disk: this });
    });
  }

  list(dir: string): Promise<string[]> {
    return this.#call("list", dir, "", () => {
      if (this.#entry(dir) !== "directory") {
        throw diskError("ENOTDIR", `list ${dir}`);
      }
      const prefix = dir === "/" ? "/" : `${dir}/`;
      const names: string[] = [];
      for (const path of this.#names.visible.keys()) {
        if (path.startsWith(prefix) && !path.includes("/", prefix.length)) {
          names.push(path.slice(prefix.length));
        }
      }
      return names.toSorted();
    });
  }

  mkdir(dir: string): Promise<void> {
    return this.#change({ name: "mkdir", path: dir }, (names) => {
      names.set(dir, names.get(dir) ?? "directory");
    });
  }

  rename(from: string, to: string): Promise<void> {
    invariant(dirname(from) === dirname(to), "a rename stays within one directory");
    const entry = this.#names.visible.get(from);
    const refusal = entry === undefined ? "ENOENT" : undefined;
    return this.#change({ name: "rename", path: from, detail: to, refusal }, (names) => {
      if (entry === "directory") {
        movedDirectory(names, from, to);
      } else if (entry !== undefined) {
        movedFile(names, entry, to);
      }
    });
  }

  unlink(path: string): Promise<void> {
    const refusal = this.#names.visible.has(path) ? undefined : "ENOENT";
    return this.#change({ name: "unlink", path, refusal }, (names) => {
      names.delete(path);
    });
  }

  syncDirectory(dir: string): Promise<void> {
    const covered = this.#names.covered(dir);
    return this.#call("syncDirectory", dir, "", () => {
      if (this.#entry(dir) !== "directory") {
        throw diskError("ENOTDIR", `sync ${dir}`);
      }
      this.#names.synced(covered);
    });
  }

  stat(path: string): Promise<number | undefined> {
    return this.#call("stat", path, "", () => {
      const entry = path === "/" ? "directory" : this.#names.visible.get(path);
      return entry === "directory" ? 0 : entry?.size;
    });
  }

  space(dir: string): Promise<Space> {
    return this.#call("space", dir, "", () => ({
      fileSystem: "memory",
      volatile: this.#options.volatile ?? false,
      freeBytes: this.capacityBytes - this.#usedBytes(),
    }));
  }

  lock(dir: string, waitMs: number): Promise<DirectoryLock> {
    return this.#call("lock", dir, "", () => {
      this.#entry(dir);
      if (this.#locked.has(dir)) {
        throw new ForebayError(
          "data_locked",
          `${dir} is in use by process ${process.pid} (waited ${waitMs} ms)`,
        );
      }
      this.#locked.add(dir);
      return {
        release: (): Promise<void> => {
          this.#locked.delete(dir);
          return Promise.resolve();
        },
      };
    });
  }

  allocate(bytes: number): Uint8Array {
    return this.#options.allocate?.(bytes) ?? new Uint8Array(bytes);
  }

  /** Throws ENOSPC when `bytes` more do not fit. */
  takeSpace(bytes: number, path: string): void {
    if (bytes > 0 && this.#usedBytes() + bytes > this.capacityBytes) {
      throw diskError("ENOSPC", `write ${path}`);
    }
  }

  #usedBytes(): number {
    let used = 0;
    for (const bytes of this.files().values()) {
      used += bytes.length;
    }
    return used;
  }

  #entry(path: string): Entry {
    const entry = path === "/" ? "directory" : this.#names.visible.get(path);
    if (entry === undefined) {
      throw diskError("ENOENT", path);
    }
    return entry;
  }

  #create(path: string): Promise<DiskFile> {
    const content = new Content();
    const refusal = this.#names.visible.has(path) ? "EEXIST" : undefined;
    return this.#change({ name: "open", path, detail: "create", refusal }, (names) => {
      names.set(path, content);
    }).then(
      () => new MemoryFile({ path, mode: "create", content, calls: this.#calls, disk: this }),
    );
  }

  #call<T>(name: CallName, path: string, detail: string, effect: () => T): Promise<T> {
    return this.#calls.make({ name, path, detail, position: 0, bytes: 0 }, effect);
  }

  /**
   * A change of the directory that holds `path`: part of what may survive from its submission on, unless it is to be
   * refused.
   */
  #change(
    what: { name: CallName; path: string; detail?: string; refusal?: string | undefined },
    apply: (names: Map<string, Entry>) => void,
  ): Promise<void> {
    const { name, path, detail = "", refusal } = what;
    const call = { name, path, detail, position: 0, bytes: 0 };
    if (refusal !== undefined) {
      return this.#calls.make(call, () => {
        throw diskError(refusal, `${name} ${path}`);
      });
    }
    const change = this.#names.submit(path, apply);
    return this.#calls.make(
      call,
      () => {
        if (this.#entry(dirname(path)) !== "directory") {
          throw diskError("ENOTDIR", path);
        }
        this.#names.complete(change);
      },
      () => {
        this.#names.withdraw(change);
      },
    );
  }
}
