import { blockBytes, isDiskFull, isUnsupported, writeFully, type Disk } from "../storage/mod.ts";

export const probeName = "probe";

/**
 * Whether files in `dir` take writes past the page cache: really writes one, because some file systems
 * refuse the open and others only the write. A full disk answers nothing; then the open decides later.
 */
export async function probeDirect(disk: Disk, dir: string): Promise<boolean> {
  const path = `${dir}/${probeName}`;
  const file = await disk.open(path, "create");
  try {
    await writeFully(file, new Uint8Array(blockBytes), 0);
    const commit = await disk.open(path, "commit");
    try {
      await writeFully(commit, disk.allocate(blockBytes), 0);
    } finally {
      await commit.close();
    }
    return true;
  } catch (error) {
    if (isDiskFull(error)) {
      return true;
    }
    if (isUnsupported(error)) {
      return false;
    }
    throw error;
  } finally {
    await file.close();
    await disk.unlink(path);
  }
}
