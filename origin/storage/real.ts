import fs, { constants } from "node:fs";
import { lockDirectory } from "./lock.ts";
import { diskError, errorCode } from "./access.ts";
import { pageAlignedMemory } from "./pages.ts";
import type { Disk, DiskFile, OpenMode, Space } from "./types.ts";

type Done<T> = (error: Error | null, value: T) => void;

/**
 * One system call on libuv's pool. Callbacks on bare descriptors, not fs/promises: the commit path
 * makes thousands of these a second, and a FileHandle costs several times as much each.
 */
function call<T>(start: (done: Done<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    start((error, value) => {
      if (error === null) {
        resolve(value);
      } else {
        reject(error);
      }
    });
  });
}

const flagsOf: Record<OpenMode, number> = {
  read: constants.O_RDONLY,
  create: constants.O_RDWR | constants.O_CREAT | constants.O_EXCL,
  update: constants.O_RDWR,
  commit: constants.O_WRONLY | (constants.O_DIRECT ?? 0) | (constants.O_DSYNC ?? 0),
};

/** File systems whose files live in memory (statfs(2), f_type). */
const volatileTypes: ReadonlyMap<number, string> = new Map([
  [0x01021994, "tmpfs"],
  [0x858458f6, "ramfs"],
]);
const durableTypes: ReadonlyMap<number, string> = new Map([
  [0xef53, "ext4"],
  [0x58465342, "xfs"],
  [0x9123683e, "btrfs"],
  [0x2fc12fc1, "zfs"],
  [0x794c7630, "overlayfs"],
  [0x6969, "nfs"],
]);

class RealFile implements DiskFile {
  readonly path: string;
  readonly descriptor: number;

  constructor(path: string, fd: number) {
    this.path = path;
    this.descriptor = fd;
  }

  read(into: Uint8Array, position: number): Promise<number> {
    return call((done: Done<number>) => {
      fs.read(this.descriptor, into, 0, into.length, position, done);
    });
  }

  write(bytes: Uint8Array, position: number): Promise<number> {
    return call((done: Done<number>) => {
      fs.write(this.descriptor, bytes, 0, bytes.length, position, done);
    });
  }

  sync(): Promise<void> {
    return call((done: Done<void>) => {
      fs.fdatasync(this.descriptor, done as fs.NoParamCallback);
    });
  }

  async size(): Promise<number> {
    const stats = await call((done: Done<fs.Stats>) => {
      fs.fstat(this.descriptor, done);
    });
    return stats.size;
  }

  close(): Promise<void> {
    return call((done: Done<void>) => {
      fs.close(this.descriptor, done as fs.NoParamCallback);
    });
  }
}

function openDescriptor(path: string, flags: number): Promise<number> {
  return call((done: Done<number>) => {
    fs.open(path, flags, 0o644, done);
  });
}

async function stat(path: string): Promise<number | undefined> {
  try {
    const stats = await call((done: Done<fs.Stats>) => {
      fs.stat(path, done);
    });
    return stats.size;
  } catch (error) {
    if (errorCode(error) === "ENOENT") {
      return undefined;
    }
    throw error;
  }
}

async function syncDirectory(dir: string): Promise<void> {
  const fd = await openDescriptor(dir, constants.O_RDONLY);
  try {
    await call((done: Done<void>) => {
      fs.fsync(fd, done as fs.NoParamCallback);
    });
  } finally {
    await call((done: Done<void>) => {
      fs.close(fd, done as fs.NoParamCallback);
    });
  }
}

async function mkdir(dir: string): Promise<void> {
  try {
    await call((done: Done<void>) => {
      // What the origin stores is its owner's alone.
      fs.mkdir(dir, { mode: 0o700 }, done as fs.NoParamCallback);
    });
  } catch (error) {
    const exists = errorCode(error) === "EEXIST" && fs.statSync(dir).isDirectory();
    if (!exists) {
      throw error;
    }
  }
}

async function space(dir: string): Promise<Space> {
  const { type, bavail, bsize } = await call((done: Done<fs.StatsFs>) => {
    fs.statfs(dir, done);
  });
  const inMemory = volatileTypes.get(type);
  return {
    fileSystem: inMemory ?? durableTypes.get(type) ?? `0x${type.toString(16)}`,
    volatile: inMemory !== undefined,
    freeBytes: bavail * bsize,
  };
}

/** The machine's own disk. */
export const realDisk: Disk = {
  async open(path, mode) {
    if (mode === "commit" && constants.O_DIRECT === undefined) {
      throw diskError("EINVAL", `this platform has no O_DIRECT to open ${path} with`);
    }
    return new RealFile(path, await openDescriptor(path, flagsOf[mode]));
  },
  async list(dir) {
    const names = await call((done: Done<string[]>) => {
      fs.readdir(dir, done);
    });
    return names.toSorted();
  },
  mkdir,
  rename: (from, to) =>
    call((done: Done<void>) => {
      fs.rename(from, to, done as fs.NoParamCallback);
    }),
  unlink: (path) =>
    call((done: Done<void>) => {
      fs.unlink(path, done as fs.NoParamCallback);
    }),
  syncDirectory,
  stat,
  space,
  lock: lockDirectory,
  allocate: pageAlignedMemory,
};
