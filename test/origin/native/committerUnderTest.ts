import { closeSync, mkdtempSync, openSync, rmSync, writeSync, constants } from "node:fs";
import { join } from "node:path";
import { Areas } from "../../../origin/journal/areas.ts";
import { Batch } from "../../../origin/journal/batch.ts";
import { CommitFile } from "../../../origin/journal/commitFile.ts";
import type { Committer } from "../../../origin/journal/committer.ts";
import { newCounters } from "../../../origin/journal/counters.ts";
import { DiskCommitter } from "../../../origin/journal/diskCommitter.ts";
import { padded } from "../../../origin/journal/layout.ts";
import { NativeCommitter } from "../../../origin/journal/nativeCommitter.ts";
import type { CommitterHandle, NativeLayer } from "../../../origin/native/load.ts";
import { realDisk } from "../../../origin/storage/mod.ts";
import { buildDir } from "../../../.scripts/run.mjs";

export const areaBytes = 64 * 1024;
export const salt = 0x5eed5a17;
const fileBytes = 4 * 1024 * 1024;

export type BackendName = "uring" | "threads" | "node" | "buffered";

/**
 * Where committers under test have their files: on the disk of the checkout. Whoever starts a process that may be killed
 * says where, and removes it.
 */
export const scratchVariable = "FOREBAY_TEST_SCRATCH";

let own: string | undefined;

function scratch(): string {
  own ??= process.env[scratchVariable] ?? mkdtempSync(join(buildDir, "committers-"));
  return own;
}

/** Removes what this process has made. */
export function cleanUp(): void {
  if (own !== undefined && process.env[scratchVariable] === undefined) {
    rmSync(own, { recursive: true, force: true });
    own = undefined;
  }
}

/** A committer with a zero-written file of its own on the disk of the checkout. */
export class UnderTest {
  readonly committer: Committer;
  readonly counters = newCounters();
  /** What it told, in order. */
  readonly advances: number[] = [];
  readonly failures: Error[] = [];
  readonly dir: string;
  readonly handle: CommitterHandle | undefined;
  readonly #direct: boolean;
  readonly #areas: Areas;
  #file: CommitFile | undefined;
  #position = 4096;
  #lsn = 1;
  #toldNext: (() => void)[] = [];

  constructor(backend: BackendName, layer: NativeLayer | undefined, depth = 4) {
    this.dir = mkdtempSync(join(scratch(), "committer-"));
    this.#direct = backend !== "buffered";
    const chain = { seq: 0, term: 1, lsn: 0, crc: 0 };
    const begin = { areaBytes, chain, term: 1, counters: this.counters };
    if (backend === "uring" || backend === "threads") {
      if (layer === undefined) {
        throw new Error(`no addon for ${backend}`);
      }
      const kept = layer;
      const watched: NativeLayer = {
        ...kept,
        openCommitter: (...start) => {
          const opened = kept.openCommitter(...start);
          Object.assign(this, { handle: opened.handle });
          return opened;
        },
      };
      this.committer = new NativeCommitter({ ...begin, layer: watched, backend, depth });
    } else {
      this.committer = new DiskCommitter({ ...begin, disk: realDisk });
    }
    this.#areas = new Areas(this.committer, areaBytes);
    const told = (): void => {
      for (const resolve of this.#toldNext.splice(0)) {
        resolve();
      }
    };
    this.committer.serve(
      {
        onAdvance: (lsn) => {
          this.advances.push(lsn);
          told();
        },
        onFailed: (error) => {
          this.failures.push(error as Error);
          told();
        },
      },
      (area) => {
        this.#areas.giveBack(area);
      },
    );
  }

  get path(): string {
    return this.#opened.path;
  }

  get #opened(): CommitFile {
    if (this.#file === undefined) {
      throw new Error("call start() first");
    }
    return this.#file;
  }

  /** Makes a file and goes on in it. */
  async start(name = "segment"): Promise<this> {
    await this.#file?.close();
    const path = join(this.dir, name);
    const fd = openSync(path, constants.O_CREAT | constants.O_WRONLY);
    writeSync(fd, new Uint8Array(fileBytes));
    closeSync(fd);
    this.#file = await CommitFile.open(realDisk, path, this.#direct, this.counters);
    this.#position = 4096;
    return this;
  }

  /** Submits a batch with one entry of `length` bytes of `fill`; returns where it goes. */
  submit(length: number, fill = 7): number {
    const area = this.#areas.take(padded(length + 72));
    const place = { generation: 1, position: this.#position };
    const batch = new Batch(area, place, { firstLsn: this.#lsn, limit: area.length, flags: 0 });
    batch.add([new Uint8Array(length).fill(fill)], length);
    this.#lsn += 1;
    this.#position += batch.bytes;
    this.committer.submit(batch, this.#opened, salt);
    return place.position;
  }

  /** From here on writes go to a descriptor that is not open. */
  async breakFile(): Promise<void> {
    const path = this.#opened.path;
    await this.#opened.close();
    const gone = { path, descriptor: 1 << 20, write: refuse, sync: refuse, close: done };
    this.#file = new (CommitFile as unknown as new (...given: unknown[]) => CommitFile)(
      gone,
      this.#direct,
      this.counters,
    );
  }

  /** The next batch goes to a place that is none. */
  skew(): void {
    this.#position += 1;
  }

  /** Resolves at the next thing told; rejects after `ms`. */
  async told(ms = 5000): Promise<void> {
    await within(
      ms,
      new Promise<void>((resolve) => {
        this.#toldNext.push(resolve);
      }),
    );
  }

  /** Resolves when the entry `lsn` was told durable; rejects after `ms`. */
  async durable(lsn: number, ms = 5000): Promise<void> {
    const until = performance.now() + ms;
    while ((this.advances.at(-1) ?? 0) < lsn) {
      await this.told(Math.max(1, until - performance.now()));
    }
  }

  async close(): Promise<void> {
    await within(3000, this.committer.settled());
    this.committer.close();
    await this.#file?.close();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

const refuse = (): Promise<never> =>
  Promise.reject(Object.assign(new Error("EBADF: no such file"), { code: "EBADF" }));
const done = (): Promise<void> => Promise.resolve();

export async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing happened for ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

export const sleep = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
