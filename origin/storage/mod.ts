/**
 * Storage: the disk port, the machine's own disk, and a disk in memory that can crash. Only this folder
 * touches files on the data path.
 */
export {
  diskError,
  errorCode,
  isDiskFull,
  isUnsupported,
  isUnwritable,
  makeDirectories,
  readFully,
  writeFully,
} from "./access.ts";
export type { DiskCall, Observer, WaitingCall } from "./memory/calls.ts";
export { MemoryDisk, type MemoryDiskOptions } from "./memory/disk.ts";
export { realDisk } from "./real.ts";
export {
  blockBytes,
  type DirectoryLock,
  type Disk,
  type DiskFile,
  type OpenMode,
  type Space,
} from "./types.ts";
