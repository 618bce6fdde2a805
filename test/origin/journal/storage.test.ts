import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { buildDir } from "../../../.scripts/run.mjs";
import { openJournal, type Journal, type JournalOptions } from "../../../origin/journal/mod.ts";
import type { CommitterHandle, NativeLayer } from "../../../origin/native/mod.ts";
import { clock, random } from "../../../origin/ports/mod.ts";
import { lockDirectory } from "../../../origin/storage/lock.ts";
import { MemoryDisk, realDisk } from "../../../origin/storage/mod.ts";
import { ForebayError } from "../../../shared/errors/mod.ts";
import { buildTestAddon, errno, loadTestAddon } from "../native/testAddon.ts";
import { entry, KiB, marks } from "./harness.ts";

const addon = await buildTestAddon();
const layer = addon === undefined ? undefined : loadTestAddon(addon);
const native = layer === undefined ? [] : (["uring", "threads"] as const);
/** One backend only: `FOREBAY_TEST_STORAGE=threads`. */
const only = process.env["FOREBAY_TEST_STORAGE"];
const backends = [...native, "node" as const, "buffered" as const].filter(
  (backend) => only === undefined || backend === only,
);
const scratch = mkdtempSync(join(buildDir, "storage-"));
let dir = "";
let count = 0;

beforeEach(() => {
  count += 1;
  dir = join(scratch, `data${count}`);
});
afterAll(() => {
  rmSync(scratch, { recursive: true, force: true });
});

interface Opened {
  readonly journal: Journal;
  readonly replayed: Uint8Array[];
  readonly advances: number[];
  readonly failures: Error[];
  /** Of each committer opened: the probe's, then the journal's. */
  readonly handles: CommitterHandle[];
}

async function open(given: Partial<JournalOptions> = {}): Promise<Opened> {
  const opened = {
    replayed: [] as Uint8Array[],
    advances: [] as number[],
    failures: [] as Error[],
  };
  const handles: CommitterHandle[] = [];
  const watched: NativeLayer | null =
    layer === undefined
      ? null
      : {
          ...layer,
          openCommitter: (...start) => {
            const committer = layer.openCommitter(...start);
            handles.push(committer.handle);
            return committer;
          },
        };
  const events = {
    onDurable: (durable: number): void => {
      opened.advances.push(durable);
    },
    onFailed: (error: Error): void => {
      opened.failures.push(error);
    },
  };
  const journal = await openJournal(
    {
      ...{ dir, disk: realDisk, clock, random, events, native: watched },
      ...{ segmentBytes: 64 * KiB, budgetBytes: 4096 * KiB },
      ...given,
    },
    (_lsn, bytes) => {
      opened.replayed.push(bytes.slice());
    },
  );
  return { ...opened, journal, handles };
}

async function refusal(given: Partial<JournalOptions>): Promise<ForebayError> {
  const error = await open(given).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ForebayError);
  return error as ForebayError;
}

describe.each(backends)("a journal with storage = %s", (storage) => {
  it("J11 J25 holds any mix of sizes over rotations and lives", async () => {
    const model: Uint8Array[] = [];
    for (let life = 0; life < 3; life++) {
      const { journal, replayed, advances, failures } = await open({ storage });
      expect(marks(replayed)).toEqual(marks(model));
      for (let i = 0; i < 60; i++) {
        const bytes = entry(model.length + 1, [0, 1, 100, 3000, 20_000, 50_000][i % 6]);
        model.push(bytes);
        expect(journal.append([bytes.subarray(0, 3), bytes.subarray(3)])).toBe(model.length);
        if (i % 7 === 0) {
          await journal.flush();
        }
      }
      await journal.flush();
      expect(journal.durable).toBe(model.length);
      expect(advances).toEqual([...new Set(advances)].toSorted((a, b) => a - b));
      expect(failures).toEqual([]);
      expect(journal.stats().segments).toBeGreaterThan(3);
      await journal.close();
    }
  });

  it("close makes what was appended durable, and a second start takes the directory at once", async () => {
    const first = await open({ storage });
    for (let i = 1; i <= 5; i++) {
      first.journal.append([entry(i)]);
    }
    await first.journal.close();
    const from = performance.now();
    const { journal, replayed } = await open({ storage });
    expect(performance.now() - from).toBeLessThan(2000);
    expect(replayed).toHaveLength(5);
    await journal.close();
  });

  it("says what it is and why", async () => {
    const { journal } = await open({ storage });
    expect(["memory", storage]).toContain(journal.storage);
    expect(journal.storageReason).toContain("configured, on ");
    await journal.close();
  });

  const isNative = storage === "uring" || storage === "threads";
  it.runIf(isNative)("J18 J26 EIO: fails closed, and what was acknowledged is kept", async () => {
    const { journal, failures, handles, advances } = await open({ storage });
    journal.append([entry(1)]);
    await journal.flush();
    layer?.testFault(handles.at(-1) as CommitterHandle, 0, -errno.EIO);
    journal.append([entry(2)]);
    const flushed = await journal.flush().catch((error: unknown) => error);
    expect((flushed as ForebayError).code).toBe("journal_failed");
    expect(failures).toEqual([flushed]);
    expect(journal.stats().failed).toMatch(/^the journal failed closed: EIO: synced write to /);
    expect(() => journal.append([entry(3)])).toThrow(/^the journal failed closed/);
    expect(advances).toEqual([1]);
    await journal.close();
    const again = await open({ storage });
    expect(again.replayed.length).toBeGreaterThanOrEqual(1);
    expect(marks(again.replayed.slice(0, 1))).toEqual(marks([entry(1)]));
    await again.journal.close();
  });
});

it.skipIf(layer === undefined)(
  "J22 the ring of uring holds the locked file too, and lets go of it at close",
  async () => {
    const holders = (): string[] =>
      readdirSync("/proc/self/fdinfo").filter((fd) => {
        try {
          return readFileSync(`/proc/self/fdinfo/${fd}`, "utf8").includes("lock.pid");
        } catch {
          return false;
        }
      });
    const { journal } = await open({ storage: "uring" });
    expect(holders()).toHaveLength(1);
    await journal.close();
    expect(holders()).toEqual([]);
    // Not even for a moment.
    expect(await lockDirectory(dir, 0).then((lock) => lock.release())).toBeUndefined();
  },
);

describe.skipIf(layer === undefined)("the choice at start", () => {
  const auto = (): Promise<Opened> => open({ storage: "auto" });

  it.each(Object.entries(errno).filter(([name]) => name !== "EIO"))(
    "io_uring refused with %s leads to threads, and the reason says so",
    async (name, number) => {
      layer?.testRefuseSetup(number);
      try {
        const { journal } = await auto();
        expect(journal.storageReason).toContain(`uring: ${name}: `);
        expect(["threads", "memory"]).toContain(journal.storage);
        await journal.close();
        const error = await refusal({ storage: "uring" });
        expect(error.code).toBe("storage_unavailable");
        expect(error.message).toContain(`storage = uring cannot be had in ${dir}/journal/0 (`);
        expect(error.message).toContain(`uring: ${name}: `);
      } finally {
        layer?.testRefuseSetup(0);
      }
    },
  );

  it("another error of io_uring is no reason to go on", async () => {
    layer?.testRefuseSetup(errno.EIO);
    try {
      expect((await refusal({ storage: "auto" })).message).toContain("EIO: ");
    } finally {
      layer?.testRefuseSetup(0);
    }
  });

  it.each(["auto", "uring", "threads", "node", "buffered"] as const)(
    "where the kernel refuses io_uring, as in a container, %s is",
    (wanted) => {
      const child = fileURLToPath(new URL("storageChild.ts", import.meta.url));
      const output = execFileSync(process.execPath, [child, addon ?? "", dir, wanted]).toString();
      const expected = {
        auto: /^(?:threads|memory) \| .*uring: EPERM: .* \| 1\n$/,
        uring: /^storage_unavailable \| storage = uring cannot be had .*uring: EPERM: /,
        threads: /^(?:threads|memory) \| .*configured, on \w+.* \| 1\n$/,
        node: /^(?:node|memory) \| .*configured, on \w+.* \| 1\n$/,
        buffered: /^(?:buffered|memory) \| .*configured, on \w+.* \| 1\n$/,
      };
      expect(output).toMatch(expected[wanted]);
    },
  );

  it("leaves no scratch file and, when refused, a directory that another can start in", async () => {
    layer?.testRefuseSetup(errno.EPERM);
    try {
      await refusal({ storage: "uring" });
    } finally {
      layer?.testRefuseSetup(0);
    }
    expect(readdirSync(join(dir, "journal/0")).filter((name) => name.startsWith("probe"))).toEqual(
      [],
    );
    const { journal } = await auto();
    journal.append([entry(1)]);
    await journal.close();
    expect(statSync(join(dir, "journal/0")).isDirectory()).toBe(true);
  });
});

describe("without the addon", () => {
  it("auto is node, and the reason says what is missing", async () => {
    const { journal } = await open({ native: null });
    expect(["node", "memory"]).toContain(journal.storage);
    expect(journal.storageReason).toContain("uring: switched off; threads: switched off");
    await journal.close();
  });

  it.each(["uring", "threads"] as const)("%s is refused", async (storage) => {
    const error = await refusal({ native: null, storage });
    expect([error.code, error.message]).toEqual([
      "storage_unavailable",
      expect.stringContaining(`${storage}: switched off`),
    ]);
  });
});

describe("on a disk that is none of this machine's", () => {
  it.each([
    ["auto", true, "node"],
    ["auto", false, "buffered"],
    ["node", true, "node"],
    ["buffered", true, "buffered"],
  ] as const)("%s, direct %s, is %s", async (storage, direct, expected) => {
    const disk = new MemoryDisk({ direct });
    const { journal } = await open({ disk, dir: "/data", storage });
    expect(journal.storage).toBe(expected);
    await journal.close();
  });

  it.each([
    [
      "uring",
      true,
      layer === undefined ? "uring: switched off" : "uring: not a disk of this machine",
    ],
    ["node", false, "no writes past the page cache: EINVAL"],
    ["threads", false, "no writes past the page cache: EINVAL"],
  ] as const)("%s, direct %s, is refused: %s", async (storage, direct, why) => {
    const disk = new MemoryDisk({ direct });
    const error = await refusal({ disk, dir: "/data", storage });
    expect(error.code).toBe("storage_unavailable");
    expect(error.message).toContain(why);
  });
});
