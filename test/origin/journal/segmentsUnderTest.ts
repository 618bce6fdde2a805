import type { MemoryDisk } from "../../../origin/storage/mod.ts";
import { entry, marks, settle, shardDir, type Opened } from "./harness.ts";

export const segment = (generation: number): string =>
  `${shardDir}/${generation.toString(16).padStart(16, "0")}.segment`;
export const watermark = `${shardDir}/watermark`;

/** Two entries of 3000 bytes fill a segment of 16 KiB. */
export async function fill(opened: Opened, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    opened.journal.append([entry(opened.journal.reserved + 1, 3000)]);
    await opened.journal.flush();
  }
  await settle();
}

export const numbered = (from: number, to: number): string[] =>
  marks(Array.from({ length: to - from + 1 }, (_, i) => entry(from + i, 3000)));

export const segmentsOf = (disk: MemoryDisk): number[] =>
  [...disk.files().keys()]
    .flatMap((path) => /\/([0-9a-f]{16})\.segment$/.exec(path)?.[1] ?? [])
    .map((name) => Number.parseInt(name, 16))
    .toSorted((a, b) => a - b);
