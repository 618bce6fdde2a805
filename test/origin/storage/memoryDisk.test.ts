import { describe, expect, it } from "vitest";
import { MemoryDisk, errorCode, readFully, type DiskFile } from "../../../origin/storage/mod.ts";
import { seededRandom } from "../seededRandom.ts";

const random = seededRandom(7);
const filled = (length: number, value: number): Uint8Array => new Uint8Array(length).fill(value);

async function syncedFile(disk: MemoryDisk, path: string, bytes: Uint8Array): Promise<DiskFile> {
  const file = await disk.open(path, "create");
  await file.write(bytes, 0);
  await file.sync();
  await disk.syncDirectory("/");
  return file;
}

describe("memory disk: a crash", () => {
  it("keeps what was synced and, at the least, nothing else", async () => {
    const disk = new MemoryDisk();
    const file = await syncedFile(disk, "/a", filled(1024, 1));
    await file.write(filled(2048, 2), 512);
    expect(disk.files().get("/a")).toHaveLength(2560);
    expect(disk.crash(random, 0).files().get("/a")).toEqual(filled(1024, 1));
  });

  it("keeps unsynced writes by sectors of 512 bytes", async () => {
    const disk = new MemoryDisk();
    const file = await syncedFile(disk, "/a", filled(8192, 1));
    await file.write(filled(8192, 2), 0);
    const kinds = new Set<string>();
    for (let i = 0; i < 20; i++) {
      const image = disk.crash(random).files().get("/a") ?? new Uint8Array(0);
      const sectors: number[] = [];
      for (let from = 0; from < 8192; from += 512) {
        const sector = image.subarray(from, from + 512);
        expect(sector).toEqual(filled(512, sector[0] ?? 0));
        sectors.push(sector[0] ?? 0);
      }
      expect(sectors.every((value) => value === 1 || value === 2)).toBe(true);
      kinds.add(sectors.join(""));
    }
    expect(kinds.size).toBe(20);
  });

  it("gives the same image for the same seed", async () => {
    const disk = new MemoryDisk();
    const file = await syncedFile(disk, "/a", filled(8192, 1));
    await file.write(filled(8192, 2), 0);
    const image = (seed: number): Uint8Array | undefined =>
      disk.crash(seededRandom(seed)).files().get("/a");
    expect(image(3)).toEqual(image(3));
    expect(image(3)).not.toEqual(image(4));
  });

  it("forgets a name whose directory was not synced, and undoes a rename and an unlink", async () => {
    const disk = new MemoryDisk();
    await (await syncedFile(disk, "/a", filled(1, 1))).close();
    await (await syncedFile(disk, "/b", filled(1, 2))).close();
    const file = await disk.open("/c", "create");
    await file.write(filled(1, 3), 0);
    await file.sync();
    await disk.rename("/a", "/d");
    await disk.unlink("/b");
    expect(await disk.list("/")).toEqual(["c", "d"]);
    expect(await disk.crash(random, 0).list("/")).toEqual(["a", "b"]);
    expect(await disk.crash(random, 1).list("/")).toEqual(["c", "d"]);
    await disk.syncDirectory("/");
    expect(await disk.crash(random, 0).list("/")).toEqual(["c", "d"]);
  });

  it("never gives one file two names, whichever of two renames survive", async () => {
    const disk = new MemoryDisk();
    await (await syncedFile(disk, "/a", filled(1, 1))).close();
    await disk.rename("/a", "/b");
    await disk.rename("/b", "/c");
    const seen = new Set<string>();
    for (let i = 0; i < 40; i++) {
      seen.add([...disk.crash(random).files().keys()].join());
    }
    expect([...seen].toSorted()).toEqual(["/a", "/b", "/c"]);
  });

  it("does nothing for calls in flight that are to be refused", async () => {
    const disk = new MemoryDisk({ stepped: true });
    const made = disk.open("/a", "create");
    disk.waiting[0]?.release();
    await made;
    const refused = [disk.unlink("/x"), disk.rename("/x", "/y"), disk.open("/a", "create")];
    expect([...disk.crash(random, 1).files().keys()]).toEqual(["/a"]);
    for (const { release } of [...disk.waiting]) {
      release();
    }
    const codes = await Promise.all(
      refused.map((each: Promise<unknown>) => each.catch((error: unknown) => errorCode(error))),
    );
    expect(codes).toEqual(["ENOENT", "ENOENT", "EEXIST"]);
  });

  it("an image shares bytes with the disk it came from and changes none of them", async () => {
    const disk = new MemoryDisk();
    const file = await syncedFile(disk, "/a", filled(1024, 1));
    const image = disk.crash(random, 0);
    const other = await image.open("/a", "update");
    await other.write(filled(10, 9), 0);
    await file.write(filled(20, 7), 100);
    await file.sync();
    const [one, two] = [disk, image].map((each) => each.files().get("/a") ?? new Uint8Array(0));
    expect([one?.[0], one?.[100], two?.[0], two?.[100]]).toEqual([1, 7, 9, 1]);
    expect(disk.crash(random, 0).files().get("/a")?.[0]).toBe(1);
    expect(image.crash(random, 0).files().get("/a")?.[0]).toBe(1);
  });

  it("loses what lies in a directory that was lost", async () => {
    const disk = new MemoryDisk();
    await disk.mkdir("/x");
    await (await disk.open("/x/a", "create")).close();
    await disk.syncDirectory("/x");
    expect([...disk.crash(random, 0).files().keys()]).toEqual([]);
    await disk.syncDirectory("/");
    expect([...disk.crash(random, 0).files().keys()]).toEqual(["/x/a"]);
  });

  it("makes a commit durable when it resolves, and may keep part of it before", async () => {
    const disk = new MemoryDisk({ stepped: true });
    const settle = async <T>(promise: Promise<T>): Promise<T> => {
      disk.waiting[0]?.release();
      return promise;
    };
    const file = await settle(disk.open("/a", "create"));
    await settle(file.write(filled(4096, 1), 0));
    await settle(file.sync());
    await settle(disk.syncDirectory("/"));
    const commit = await settle(disk.open("/a", "commit"));
    const written = commit.write(filled(4096, 2), 0);
    expect(disk.crash(random, 0).files().get("/a")).toEqual(filled(4096, 1));
    expect(disk.crash(random, 1).files().get("/a")).toEqual(filled(4096, 2));
    await settle(written);
    expect(disk.crash(random, 0).files().get("/a")).toEqual(filled(4096, 2));
  });

  it("never brings back what a later synced write replaced", async () => {
    const disk = new MemoryDisk();
    const file = await syncedFile(disk, "/a", filled(512, 1));
    disk.observer = () => "EIO";
    const failed = await file.write(filled(512, 2), 0).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(Error);
    disk.observer = undefined;
    await file.write(filled(512, 2), 0);
    await file.write(filled(512, 3), 0);
    await file.sync();
    expect(disk.crash(random, 1).files().get("/a")).toEqual(filled(512, 3));
  });
});

describe("memory disk: faults", () => {
  it("J18 forgets the writes of a failed sync: a second sync does not make them durable", async () => {
    const disk = new MemoryDisk();
    const file = await syncedFile(disk, "/a", filled(512, 1));
    await file.write(filled(512, 2), 0);
    disk.observer = (call) => (call.name === "sync" ? "EIO" : undefined);
    expect(errorCode(await file.sync().catch((error: unknown) => error))).toBe("EIO");
    disk.observer = undefined;
    await file.sync();
    expect(disk.crash(random, 0).files().get("/a")).toEqual(filled(512, 1));
    expect(disk.files().get("/a")).toEqual(filled(512, 2));
  });

  it("does half of a short read or write", async () => {
    const disk = new MemoryDisk();
    const file = await syncedFile(disk, "/a", filled(8192, 1));
    const commit = await disk.open("/a", "commit");
    disk.observer = () => "short";
    expect(await commit.write(filled(8192, 2), 0)).toBe(4096);
    expect(await file.read(new Uint8Array(8192), 0)).toBe(4096);
    disk.observer = undefined;
    const into = new Uint8Array(8192);
    await readFully(file, into, 0);
    expect(into.indexOf(1)).toBe(4096);
  });

  it("is full at its capacity and takes writes again when there is more", async () => {
    const disk = new MemoryDisk({ capacityBytes: 1000 });
    const file = await disk.open("/a", "create");
    await file.write(filled(1000, 1), 0);
    const full = await file.write(filled(1, 1), 1000).catch((error: unknown) => error);
    expect(errorCode(full)).toBe("ENOSPC");
    await file.write(filled(1000, 2), 0);
    expect((await disk.space("/")).freeBytes).toBe(0);
    disk.capacityBytes = 2000;
    await file.write(filled(1, 1), 1000);
    expect((await disk.space("/")).freeBytes).toBe(999);
  });
});
