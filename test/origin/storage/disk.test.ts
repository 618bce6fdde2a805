import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { MemoryDisk, realDisk } from "../../../origin/storage/mod.ts";
import { seededRandom } from "../seededRandom.ts";
import { diskContract } from "./disk.contract.ts";

const made: string[] = [];
afterAll(async () => {
  for (const dir of made) {
    await rm(dir, { recursive: true, force: true });
  }
});

diskContract("real", async () => {
  const dir = await mkdtemp(join(tmpdir(), "forebay-disk-"));
  made.push(dir);
  return { disk: realDisk, dir };
});

diskContract("memory", async () => {
  const disk = new MemoryDisk();
  await disk.mkdir("/d");
  return { disk, dir: "/d" };
});

diskContract("memory without O_DIRECT", async () => {
  const disk = new MemoryDisk({ direct: false });
  await disk.mkdir("/d");
  return { disk, dir: "/d" };
});

diskContract("memory after a crash", async () => {
  const before = new MemoryDisk();
  await before.mkdir("/d");
  await before.syncDirectory("/");
  return { disk: before.crash(seededRandom(1), 0.5), dir: "/d" };
});
