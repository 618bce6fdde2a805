import { beforeEach, describe, expect, it } from "vitest";
import { ForebayError } from "../../../shared/errors/mod.ts";
import {
  blockBytes,
  errorCode,
  isUnsupported,
  makeDirectories,
  readFully,
  writeFully,
  type Disk,
} from "../../../origin/storage/mod.ts";

/** What every implementation of the port does alike. `make` gives a disk and an empty directory on it. */
export function diskContract(
  backend: string,
  make: () => Promise<{ disk: Disk; dir: string }>,
): void {
  describe(`disk contract: ${backend}`, () => {
    let disk: Disk;
    let dir: string;
    beforeEach(async () => {
      ({ disk, dir } = await make());
    });

    const bytes = (length: number, seed: number): Uint8Array =>
      Uint8Array.from({ length }, (_, i) => (i * 31 + seed) & 0xff);
    const failure = (promise: Promise<unknown>): Promise<string | undefined> =>
      promise.then(
        () => "no error",
        (error: unknown) => errorCode(error),
      );

    it("reads back what was written, at any position", async () => {
      const file = await disk.open(`${dir}/a`, "create");
      await writeFully(file, bytes(1000, 1), 0);
      await writeFully(file, bytes(10, 9), 500);
      const expected = bytes(1000, 1);
      expected.set(bytes(10, 9), 500);
      const into = new Uint8Array(1000);
      expect(await readFully(file, into, 0)).toBe(1000);
      expect(into).toEqual(expected);
      await file.sync();
      expect(await file.size()).toBe(1000);
      expect(await disk.stat(`${dir}/a`)).toBe(1000);
      await file.close();
    });

    it("reads zeros in a hole, less at the end, nothing beyond it", async () => {
      const file = await disk.open(`${dir}/a`, "create");
      await writeFully(file, bytes(4, 1), 600);
      const into = new Uint8Array(8).fill(255);
      expect(await readFully(file, into, 0)).toBe(8);
      expect(into).toEqual(new Uint8Array(8));
      expect(await readFully(file, into, 602)).toBe(2);
      expect(await readFully(file, into, 604)).toBe(0);
      await file.close();
    });

    it("refuses to create what exists and to open what does not", async () => {
      const file = await disk.open(`${dir}/a`, "create");
      await file.close();
      expect(await failure(disk.open(`${dir}/a`, "create"))).toBe("EEXIST");
      expect(await failure(disk.open(`${dir}/b`, "read"))).toBe("ENOENT");
      expect(await failure(disk.open(`${dir}/b`, "update"))).toBe("ENOENT");
      expect(await failure(disk.open(`${dir}/none/b`, "create"))).toBe("ENOENT");
      expect(await disk.stat(`${dir}/b`)).toBeUndefined();
    });

    it("keeps to the mode a file was opened with", async () => {
      const created = await disk.open(`${dir}/a`, "create");
      await writeFully(created, bytes(8, 1), 0);
      await created.close();
      const reader = await disk.open(`${dir}/a`, "read");
      expect(await failure(reader.write(bytes(8, 2), 0))).toBe("EBADF");
      await reader.close();
      const writer = await disk.open(`${dir}/a`, "update");
      await writeFully(writer, bytes(2, 3), 2);
      const into = new Uint8Array(8);
      await readFully(writer, into, 0);
      await writer.close();
      const expected = bytes(8, 1);
      expected.set(bytes(2, 3), 2);
      expect(into).toEqual(expected);
    });

    it("commits whole blocks from its own memory, in any order", async () => {
      const file = await disk.open(`${dir}/a`, "create");
      await writeFully(file, new Uint8Array(4 * blockBytes), 0);
      await file.sync();
      const memory = disk.allocate(3 * blockBytes);
      expect(memory).toEqual(new Uint8Array(3 * blockBytes));
      memory.set(bytes(3 * blockBytes, 5));
      const commit = await disk.open(`${dir}/a`, "commit").catch((error: unknown) => {
        expect(isUnsupported(error)).toBe(true);
        return undefined;
      });
      if (commit === undefined) {
        return;
      }
      await Promise.all([
        writeFully(commit, memory.subarray(blockBytes), 2 * blockBytes),
        writeFully(commit, memory.subarray(0, blockBytes), 0),
      ]);
      expect(await failure(commit.write(memory.subarray(0, 100), 0))).toBe("EINVAL");
      expect(await failure(commit.write(memory.subarray(0, blockBytes), 100))).toBe("EINVAL");
      await commit.close();
      const into = new Uint8Array(4 * blockBytes);
      await readFully(file, into, 0);
      await file.close();
      expect(into.subarray(0, blockBytes)).toEqual(memory.subarray(0, blockBytes));
      expect(into.subarray(blockBytes, 2 * blockBytes)).toEqual(new Uint8Array(blockBytes));
      expect(into.subarray(2 * blockBytes)).toEqual(memory.subarray(blockBytes));
    });

    it("lists names sorted, without what lies deeper", async () => {
      await makeDirectories(disk, `${dir}/sub/deeper`);
      for (const name of ["b", "a", "sub/c"]) {
        await (await disk.open(`${dir}/${name}`, "create")).close();
      }
      expect(await disk.list(dir)).toEqual(["a", "b", "sub"]);
      expect(await disk.list(`${dir}/sub`)).toEqual(["c", "deeper"]);
      expect(await failure(disk.list(`${dir}/none`))).toBe("ENOENT");
    });

    it("makes a directory twice without complaint, but not without its parent", async () => {
      await disk.mkdir(`${dir}/x`);
      await disk.mkdir(`${dir}/x`);
      expect(await disk.list(dir)).toEqual(["x"]);
      expect(await failure(disk.mkdir(`${dir}/none/y`))).toBe("ENOENT");
    });

    it("renames over an existing name, and unlinks", async () => {
      for (const [name, seed] of [["a", 1] as const, ["b", 2] as const]) {
        const file = await disk.open(`${dir}/${name}`, "create");
        await writeFully(file, bytes(4, seed), 0);
        await file.close();
      }
      await disk.rename(`${dir}/a`, `${dir}/b`);
      await disk.syncDirectory(dir);
      expect(await disk.list(dir)).toEqual(["b"]);
      const file = await disk.open(`${dir}/b`, "read");
      const into = new Uint8Array(4);
      await readFully(file, into, 0);
      await file.close();
      expect(into).toEqual(bytes(4, 1));
      expect(await failure(disk.rename(`${dir}/a`, `${dir}/c`))).toBe("ENOENT");
      await disk.unlink(`${dir}/b`);
      expect(await failure(disk.unlink(`${dir}/b`))).toBe("ENOENT");
      expect(await disk.list(dir)).toEqual([]);
      expect(await failure(disk.syncDirectory(`${dir}/none`))).toBe("ENOENT");
    });

    it("renames a directory with all that lies in it", async () => {
      await makeDirectories(disk, `${dir}/from/deep`);
      const file = await disk.open(`${dir}/from/deep/a`, "create");
      await writeFully(file, bytes(4, 1), 0);
      await disk.rename(`${dir}/from`, `${dir}/to`);
      await disk.syncDirectory(dir);
      await writeFully(file, bytes(4, 7), 4);
      await file.close();
      expect(await disk.list(dir)).toEqual(["to"]);
      expect(await disk.stat(`${dir}/from/deep/a`)).toBeUndefined();
      expect(await disk.stat(`${dir}/to/deep/a`)).toBe(8);
    });

    it("tells the space there is", async () => {
      const space = await disk.space(dir);
      expect(space.fileSystem).not.toBe("");
      expect(space.freeBytes).toBeGreaterThan(0);
    });

    it("J22 locks a directory once, names the holder, and locks again after release", async () => {
      const lock = await disk.lock(dir, 0);
      const refused = await disk.lock(dir, 20).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(ForebayError);
      expect((refused as ForebayError).code).toBe("data_locked");
      expect((refused as ForebayError).message).toContain(`process ${process.pid} (waited 20 ms)`);
      await lock.release();
      await lock.release();
      const again = await disk.lock(dir, 0);
      await again.release();
    });
  });
}
