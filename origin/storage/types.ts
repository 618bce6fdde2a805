/**
 * The disk as the journal and the store see it. Paths are absolute. Every call rejects with an Error
 * that carries the system's `code` ("EIO", "ENOSPC", "ENOENT" …); see `errorCode`.
 */
export interface Disk {
  open(path: string, mode: OpenMode): Promise<DiskFile>;
  /** Names in a directory, sorted. */
  list(dir: string): Promise<string[]>;
  /** One level; a directory that is already there is no error. Durable after `syncDirectory` of its parent. */
  mkdir(dir: string): Promise<void>;
  /** Within one directory; replaces `to`. Durable after `syncDirectory`. */
  rename(from: string, to: string): Promise<void>;
  /** Durable after `syncDirectory`. */
  unlink(path: string): Promise<void>;
  /** What was created, renamed or unlinked in `dir` before this call is durable when it resolves. */
  syncDirectory(dir: string): Promise<void>;
  /** Size of a file in bytes (of a directory: any number); undefined when nothing is there. */
  stat(path: string): Promise<number | undefined>;
  space(dir: string): Promise<Space>;
  /**
   * Takes the exclusive lock of a directory, which the death of the process releases.
   *
   * @param waitMs how long to go on trying while another holds it
   * @throws ForebayError `data_locked`, naming the holder
   */
  lock(dir: string, waitMs: number): Promise<DirectoryLock>;
  /** Zeroed memory a file opened for "commit" takes writes from. */
  allocate(bytes: number): Uint8Array;
}

/**
 * - `read`: an existing file, read only
 * - `create`: a file that must not exist yet, read and write
 * - `update`: an existing file, read and write
 * - `commit`: an existing file, write only, past the page cache (O_DIRECT), every write durable when it
 *   resolves (O_DSYNC). Positions, lengths and memory are multiples of `blockBytes`. A file system that
 *   cannot do this refuses the open or the first write with EINVAL.
 */
export type OpenMode = "read" | "create" | "update" | "commit";

/** An open file. Calls on it may overlap and finish in any order. */
export interface DiskFile {
  readonly path: string;
  /** The system's descriptor, where there is one: the native committer writes through it. */
  readonly descriptor?: number;
  /** Bytes read from `position` on, fewer at the end of the file or whenever the system likes; see `readFully`. */
  read(into: Uint8Array, position: number): Promise<number>;
  /** Bytes written, at times fewer than given; see `writeFully`. `bytes` must not change until then. */
  write(bytes: Uint8Array, position: number): Promise<number>;
  /** Writes that resolved before this call are durable when it resolves (fdatasync). */
  sync(): Promise<void>;
  size(): Promise<number>;
  close(): Promise<void>;
}

export interface Space {
  /** Name of the file system's type, or its number in hexadecimal. */
  readonly fileSystem: string;
  /** The file system lives in memory: nothing on it outlives the machine. */
  readonly volatile: boolean;
  /** Bytes an unprivileged writer may still take. */
  readonly freeBytes: number;
}

export interface DirectoryLock {
  /** The system's descriptor that holds the lock, where there is one; see NativeCommitter. */
  readonly descriptor?: number;
  release(): Promise<void>;
}

/** Alignment of everything a "commit" file is given, bytes. */
export const blockBytes = 4096;
