import { blockBytes, type Disk, type DiskFile } from "./types.ts";
import { dirname } from "node:path";

/** The system's code of a disk error ("EIO", "ENOSPC" …), undefined for any other error. */
export function errorCode(error: unknown): string | undefined {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  return typeof code === "string" ? code : undefined;
}

/** Space or quota is used up: the one disk error that passes by itself. */
export function isDiskFull(error: unknown): boolean {
  const code = errorCode(error);
  return code === "ENOSPC" || code === "EDQUOT";
}

const unwritable: ReadonlySet<string | undefined> = new Set([
  "EACCES",
  "EPERM",
  "EROFS",
  "ENOTDIR",
  "EEXIST",
  "ENAMETOOLONG",
]);

/** The path cannot be written by this process, whatever the disk does. */
export function isUnwritable(error: unknown): boolean {
  return unwritable.has(errorCode(error));
}

/** The file system does not know this way of writing (O_DIRECT, O_DSYNC). */
export function isUnsupported(error: unknown): boolean {
  const code = errorCode(error);
  return code === "EINVAL" || code === "EOPNOTSUPP" || code === "ENOTSUP";
}

/** An error as the system would give it. */
export function diskError(code: string, what: string): Error {
  return Object.assign(new Error(`${code}: ${what}`), { code });
}

/** Writes all of `bytes`. A short write goes on at the last whole block, as a "commit" file demands. */
export async function writeFully(
  file: DiskFile,
  bytes: Uint8Array,
  position: number,
): Promise<void> {
  let done = await file.write(bytes, position);
  while (done < bytes.length) {
    const from = done - (done % blockBytes);
    const more = await file.write(bytes.subarray(from), position + from);
    if (from + more <= done) {
      throw diskError("EIO", `write of ${file.path} makes no progress at ${position + done}`);
    }
    done = from + more;
  }
}

/** Reads until `into` is full or the file ends; returns the bytes read. */
export async function readFully(
  file: DiskFile,
  into: Uint8Array,
  position: number,
): Promise<number> {
  let done = 0;
  while (done < into.length) {
    const more = await file.read(done === 0 ? into : into.subarray(done), position + done);
    if (more === 0) {
      break;
    }
    done += more;
  }
  return done;
}

/** Makes `dir` and what is missing above it, each level durable before the next. */
export async function makeDirectories(disk: Disk, dir: string): Promise<void> {
  if ((await disk.stat(dir)) !== undefined) {
    return;
  }
  const parent = dirname(dir);
  if (parent !== dir) {
    await makeDirectories(disk, parent);
  }
  await disk.mkdir(dir);
  await disk.syncDirectory(parent);
}
