import { createHash } from "node:crypto";
import { MemoryDisk, type DiskCall } from "../../../origin/storage/mod.ts";
import { crc32c } from "../../../shared/crc/mod.ts";
import type { Random } from "../../../shared/ports/mod.ts";
import { seededRandom } from "../seededRandom.ts";
import { KiB, open, settle, type Opened } from "./harness.ts";

/**
 * Crash exploration: a journal lives on a stepped disk whose calls end in a random order; after every step the machine may
 * lose power. Each surviving image is recovered and compared with what had been promised by then, then lived in, and
 * crashed again.
 */
export interface Explored {
  /** Images recovered, and how many of them were distinct. */
  images: number;
  readonly distinct: Set<string>;
  /** How often a crash fell between two calls that change the disk, by their kinds. */
  readonly reached: Map<string, number>;
  /** One line per image: with the seed it must repeat itself. */
  readonly log: ReturnType<typeof createHash>;
}

export function newExplored(): Explored {
  return { images: 0, distinct: new Set(), reached: new Map(), log: createHash("sha256") };
}

/** What the owner of a journal knows: everything it appended, and how much was acknowledged. */
interface Promised {
  readonly appended: string[];
  acknowledged: number;
}

const sizes = { segmentBytes: 16 * KiB, budgetBytes: 256 * KiB };
const survivals = [0, 0.1, 0.5, 0.9, 1];

const mark = (bytes: Uint8Array): string => `${bytes.length}:${crc32c(bytes).toString(16)}`;

function digest(disk: MemoryDisk): string {
  const hash = createHash("sha1");
  for (const [path, bytes] of [...disk.files()].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    hash.update(path).update(bytes);
  }
  return hash.digest("base64");
}

function randomEntry(random: Random): Uint8Array {
  const kind = random.next();
  const most = kind < 0.6 ? 300 : kind < 0.9 ? 3000 : 8000;
  return random.bytes(8 + Math.floor(random.next() * most));
}

/**
 * Two lives under one seed: each opens what the one before left, appends in bursts, at times meets a failing call, closes
 * or not, and at every step loses power up to `imagesPerStep` times.
 */
export async function explore(
  seed: number,
  explored: Explored,
  imagesPerStep: number,
): Promise<void> {
  const random = seededRandom(seed);
  let disk = new MemoryDisk();
  const promised: Promised = { appended: [], acknowledged: 0 };
  for (let life = 0; life < 2; life++) {
    const options = { stepped: true, direct: random.next() < 0.8 };
    disk = disk.crash(random, pick(survivals, random), options);
    disk.observer = failingOnce(random);
    await new Life(disk, random, promised, { explored, imagesPerStep }).live();
  }
}

/** In one life of four, one call that writes or syncs fails. */
function failingOnce(random: Random): (call: DiskCall) => string | undefined {
  const kind = pick(["write", "sync", "syncDirectory", "rename"], random);
  let left = random.next() < 0.25 ? 1 + Math.floor(random.next() * 15) : Infinity;
  return (call) =>
    call.name === kind && --left === 0 ? pick(["EIO", "ENOSPC"], random) : undefined;
}

function pick<T>(from: readonly T[], random: Random): T {
  return from[Math.floor(random.next() * from.length)] as T;
}

class Life {
  readonly #disk: MemoryDisk;
  readonly #random: Random;
  readonly #promised: Promised;
  readonly #explored: Explored;
  readonly #imagesPerStep: number;
  #last = "start";

  constructor(
    disk: MemoryDisk,
    random: Random,
    promised: Promised,
    how: { explored: Explored; imagesPerStep: number },
  ) {
    this.#disk = disk;
    this.#random = random;
    this.#promised = promised;
    this.#explored = how.explored;
    this.#imagesPerStep = how.imagesPerStep;
  }

  async live(): Promise<void> {
    const opened = await this.#until(open(this.#disk, sizes)).catch(expectInjected);
    if (opened === undefined) {
      return;
    }
    // What recovery gave is served from here on; the rest of the earlier life is gone for good.
    this.#promised.appended.splice(opened.replayed.length);
    this.#promised.acknowledged = opened.replayed.length;
    const bursts = 2 + Math.floor(this.#random.next() * 4);
    for (let i = 0; i < bursts && opened.failures.length === 0; i++) {
      this.#burst(opened);
      await this.#step(opened, Math.floor(this.#random.next() * 6));
    }
    const { journal } = opened;
    const end = this.#random.next() < 0.5 ? journal.close() : journal.flush();
    await this.#until(end, opened).catch(expectInjected);
  }

  #burst(opened: Opened): void {
    const count = 1 + Math.floor(this.#random.next() * 6);
    for (let i = 0; i < count; i++) {
      const bytes = randomEntry(this.#random);
      try {
        opened.journal.append([bytes]);
      } catch (error) {
        expectInjected(error);
        return;
      }
      this.#promised.appended.push(mark(bytes));
    }
  }

  /** Steps until `promise` settles. */
  async #until<T>(promise: Promise<T>, opened?: Opened): Promise<T> {
    let pending = true;
    const done = promise.finally(() => {
      pending = false;
    });
    done.catch(() => undefined);
    while (pending) {
      await this.#step(opened, 1);
    }
    return done;
  }

  async #step(opened: Opened | undefined, count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      await settle(1);
      const waiting = pick(this.#disk.waiting, this.#random);
      if (waiting !== undefined) {
        await this.#crashes(`${this.#last} | ${waiting.call.name}`);
        waiting.release();
        this.#last = waiting.call.name;
        await settle(1);
      } else {
        // Only time can bring on what is still due: the next look for space.
        opened?.clock.advance(2000);
      }
      if (opened !== undefined) {
        this.#promised.acknowledged = Math.max(this.#promised.acknowledged, opened.journal.durable);
      }
    }
  }

  /** Loses power here, several times over. */
  async #crashes(between: string): Promise<void> {
    const { reached, distinct, log } = this.#explored;
    reached.set(between, (reached.get(between) ?? 0) + 1);
    // The least and the most that can survive, then anything between while that gives something new.
    let known = 0;
    for (let i = 0; i < this.#imagesPerStep && known < 3; i++) {
      const survival = [0, 1][i] ?? 0.1 + 0.8 * this.#random.next();
      const image = this.#disk.crash(this.#random, survival);
      const name = digest(image);
      this.#explored.images += 1;
      log.update(`${between} ${name}\n`);
      if (distinct.has(name)) {
        known += 1;
        continue;
      }
      distinct.add(name);
      await recovered(image, this.#promised, this.#random.next() * 2 ** 32);
    }
  }
}

/** Recovers an image, checks the promise, goes on for one entry, and recovers once more after another crash. */
async function recovered(image: MemoryDisk, promised: Promised, seed: number): Promise<void> {
  const random = seededRandom(seed);
  const first = await open(image, sizes);
  const found = first.replayed.map(mark);
  check(found, promised);
  const bytes = randomEntry(random);
  first.journal.append([bytes]);
  await first.journal.flush();
  const again = await open(image.crash(random, pick(survivals, random)), sizes);
  check(again.replayed.map(mark), {
    appended: [...found, mark(bytes)],
    acknowledged: found.length + 1,
  });
}

/** Every acknowledged entry is there, nothing torn or twice, and what else is there continues it without a gap. */
function check(found: readonly string[], { appended, acknowledged }: Promised): void {
  const expected = appended.slice(0, found.length);
  if (found.length < acknowledged || found.join() !== expected.join()) {
    throw new Error(
      `recovered ${found.length} entries [${found.join()}], acknowledged ${acknowledged} of [${appended.join()}]`,
    );
  }
}

/** A life may end with the error that was injected, and with no other. */
function expectInjected(error: unknown): undefined {
  const text = error instanceof Error ? error.message : String(error);
  if (!/injected|file system of/.test(text)) {
    throw error;
  }
}
