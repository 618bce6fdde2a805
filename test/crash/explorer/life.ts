import {
  SegmentBudget,
  type BudgetMember,
  type Entry,
  type Journal,
} from "../../../origin/journal/mod.ts";
import { lsn } from "../../../shared/ids/mod.ts";
import { MemoryDisk, type DiskCall } from "../../../origin/storage/mod.ts";
import type { Random } from "../../../shared/ports/mod.ts";
import { KiB, open, settle, type OpenChoices, type Opened } from "../../origin/journal/harness.ts";
import { seededRandom } from "../../origin/seededRandom.ts";
import { damaged } from "./damage.ts";
import { type Explored, noteFindings } from "./explored.ts";
import { fingerprint } from "./fingerprint.ts";
import { foundBy, History, type Found } from "./history.ts";
import { Steps } from "./steps.ts";

/** Memory for batches of journals that only recover: nothing is ever written from it. */
const idleMemory = new Uint8Array(8 * 64 * KiB);
const idle = { allocate: (bytes: number): Uint8Array => idleMemory.subarray(0, bytes) };

const survivals = [0, 0.1, 0.5, 0.9, 1];

export function pick<T>(from: readonly T[], random: Random): T {
  return from[Math.floor(random.next() * from.length)] as T;
}

const below = (random: Random, limit: number): number => Math.floor(random.next() * limit);

/** Entries that fill a segment in two to ten. */
function randomEntry(random: Random, segmentBytes: number): Uint8Array {
  const kind = random.next();
  const most = kind < 0.6 ? 300 : kind < 0.9 ? 3000 : segmentBytes / 2 - 200;
  return random.bytes(8 + below(random, most));
}

/**
 * Three lives under one seed: each opens what the one before left, appends in bursts, trims, at times meets a failing or short
 * call, closes or not. Its disk's calls end in a random order, and at every step, those of its start too, it loses power up to
 * `imagesPerStep` times; each surviving image is recovered and compared with what had been promised by then.
 */
export async function explore(
  seed: number,
  explored: Explored,
  imagesPerStep: number,
): Promise<void> {
  const random = seededRandom(seed);
  const segmentBytes = (random.next() < 0.85 ? 16 : pick([32, 64], random)) * KiB;
  const sizes = { segmentBytes, budgetBytes: segmentBytes * pick([4, 8, 16], random) };
  const trimChance = pick([0.05, 0.05, 0.4, 0.8], random);
  const run = { explored, imagesPerStep, sizes, trimChance, seen: new Map<number, Found>() };
  const history = new History();
  let disk = new MemoryDisk();
  for (let life = 0; life < 3; life++) {
    const options = { stepped: true, direct: random.next() < 0.8 };
    disk = disk.crash(random, pick(survivals, random), options);
    const steps = new Steps(explored.pairs);
    disk.observer = faultOnce(random, steps);
    await new Life({ disk, random, history, steps, run }).live();
  }
}

/** In one life of four, one call fails; in another, calls do half of their work at times. */
function faultOnce(random: Random, steps: Steps): (call: DiskCall) => string | undefined {
  const kind = pick(["write", "sync", "syncDirectory", "rename", "unlink", "open"], random);
  const what = random.next();
  let left = what < 0.25 ? 1 + below(random, 15) : Infinity;
  return (call) => {
    if (call.name === kind && --left === 0) {
      steps.failed();
      return pick(["EIO", "ENOSPC"], random);
    }
    return what > 0.9 && call.bytes > 4096 && random.next() < 0.3 ? "short" : undefined;
  };
}

interface Run {
  readonly explored: Explored;
  readonly imagesPerStep: number;
  /** After a burst. Where it is small much is trimmed at once. */
  readonly trimChance: number;
  readonly sizes: Required<Pick<OpenChoices, "segmentBytes" | "budgetBytes">>;
  /** What was found in the images of this run. */
  readonly seen: Map<number, Found>;
}

interface LifeParts {
  readonly disk: MemoryDisk;
  readonly random: Random;
  readonly history: History;
  readonly steps: Steps;
  readonly run: Run;
}

class Life {
  readonly #parts: LifeParts;
  readonly #budget: SegmentBudget;
  /** Another ring of the process, which at times takes the whole budget: then what is trimmed is unlinked. */
  readonly #neighbour: BudgetMember;

  constructor(parts: LifeParts) {
    this.#parts = parts;
    const { segmentBytes, budgetBytes } = parts.run.sizes;
    this.#budget = new SegmentBudget(budgetBytes);
    this.#neighbour = this.#budget.register(segmentBytes);
  }

  async live(): Promise<void> {
    const { disk, random, history, steps, run } = this.#parts;
    const options = { ...run.sizes, budget: this.#budget, seed: below(random, 2 ** 31) };
    const opening = open(disk, options);
    const opened = await this.#until(opening).catch(expectInjected);
    if (opened === undefined) {
      return;
    }
    steps.opened(disk);
    history.goOn(foundBy(opened));
    const bursts = 3 + below(random, run.trimChance < 0.1 ? 14 : 6);
    for (let i = 0; i < bursts && opened.failures.length === 0; i++) {
      this.#burst(opened);
      await this.#step(opened, below(random, 8));
      if (random.next() < run.trimChance) {
        this.#trim(opened);
      }
    }
    const { journal } = opened;
    const end = random.next() < 0.5 ? journal.close() : journal.flush();
    await this.#until(end, opened).catch(expectInjected);
    await this.#step(opened, below(random, 12));
  }

  #burst({ journal }: Opened): void {
    const { random, history, run } = this.#parts;
    const count = 1 + below(random, 6);
    for (let i = 0; i < count; i++) {
      const bytes = randomEntry(random, run.sizes.segmentBytes);
      try {
        history.append(journal.append([bytes]), bytes);
      } catch (error) {
        expectInjected(error);
        return;
      }
    }
  }

  #trim({ journal }: Opened): void {
    const { random, history, run } = this.#parts;
    const { segmentBytes, budgetBytes } = run.sizes;
    this.#neighbour.release(this.#neighbour.heldBytes / segmentBytes);
    if (random.next() < 0.4) {
      this.#neighbour.adopt(budgetBytes / segmentBytes);
    }
    const upTo = Math.max(0, journal.durable - below(random, 3));
    history.giveUp(upTo);
    journal.trim(lsn(upTo));
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
    const { disk, random, history, steps } = this.#parts;
    for (let i = 0; i < count; i++) {
      await settle(1);
      const waiting = pick(disk.waiting, random);
      if (waiting !== undefined) {
        await this.#powerCuts(waiting.call);
        waiting.release();
        steps.completed(waiting.call, disk);
      } else {
        // Only time can bring on what is still due: the next look for space, the next try of a trim.
        opened?.clock.advance(2000);
      }
      if (opened !== undefined) {
        history.observe(opened.journal);
      }
    }
  }

  /** Loses power here, several times over. */
  async #powerCuts(before: DiskCall): Promise<void> {
    const { disk, random, history, steps, run } = this.#parts;
    const { explored, imagesPerStep, seen } = run;
    // The least and the most that can survive, then anything between while that gives something new.
    let known = 0;
    for (let i = 0; i < imagesPerStep && known < 2; i++) {
      const survival = [0, 1][i] ?? 0.1 + 0.8 * random.next();
      const image = disk.crash(random, survival, idle);
      const name = fingerprint(image);
      explored.images += 1;
      explored.log.update(`${before.name} ${before.path} ${name}\n`);
      steps.image();
      const found = seen.get(name);
      if (found !== undefined) {
        // The same bytes, but more may have been promised since.
        history.check(found);
        known += 1;
        continue;
      }
      explored.distinct.add(name);
      seen.set(name, await this.#recovered(image));
    }
  }

  /** Recovers an image and checks the promise; at times goes on, loses power again and recovers that. */
  async #recovered(image: MemoryDisk): Promise<Found> {
    const { history, random, run } = this.#parts;
    const { sizes, explored } = run;
    const seed = below(random, 2 ** 31);
    const again = random.next() < 0.2 ? image.crash(random, 1) : undefined;
    const opened = await open(image, { ...sizes, seed });
    const found = foundBy(opened);
    history.check(found);
    noteFindings(explored, opened.findings);
    if (again !== undefined) {
      await this.#goesOn(again, history.copy(), seededRandom(seed));
    }
    return found;
  }

  /** The image in a life of its own, and what a crash leaves of that. */
  async #goesOn(image: MemoryDisk, history: History, random: Random): Promise<void> {
    const { sizes, explored } = this.#parts.run;
    if (random.next() < 0.5) {
      await damaged(image, { history, random, sizes, explored });
      return;
    }
    const opened = await open(image, { ...sizes, seed: below(random, 2 ** 31) });
    history.goOn(foundBy(opened));
    const { journal } = opened;
    const bytes = randomEntry(random, sizes.segmentBytes);
    try {
      history.append(journal.append([bytes]), bytes);
    } catch (error) {
      expectInjected(error);
    }
    await journal.flush();
    history.checkRead(journal.trimmed, await allOf(journal));
    history.giveUp(journal.durable);
    journal.trim(journal.durable);
    history.observe(journal);
    const second = await open(image.crash(random, pick(survivals, random)), sizes);
    history.check(foundBy(second));
  }
}

/** Every entry that can be read back. */
async function allOf(journal: Journal): Promise<Entry[]> {
  const reader = journal.read(lsn(journal.trimmed + 1));
  const all: Entry[] = [];
  for (let some = await reader.next(); some !== undefined; some = await reader.next()) {
    all.push(...some.map((entry) => ({ lsn: entry.lsn, bytes: entry.bytes.slice() })));
  }
  await reader.close();
  return all;
}

/** A life may end with the error that was injected, or a full budget, and with no other. */
function expectInjected(error: unknown): undefined {
  const text = error instanceof Error ? error.message : String(error);
  if (!/injected|file system of|its budget of|makes no progress|past the page cache/.test(text)) {
    throw error;
  }
}
