import { ForebayError, invariant } from "../../shared/errors/mod.ts";
import type { Clock, Random } from "../../shared/ports/mod.ts";
import { nextBackoffMs } from "./backoff.ts";
import type { BudgetMember, SegmentBudget } from "./budget.ts";
import { viewOf } from "./layout.ts";
import type { Job } from "./manager.ts";
import type { Manifest } from "./manifest.ts";
import { prepareSegment, type PrepareOptions } from "./prepare.ts";
import type { SegmentHeader } from "./segmentHeader.ts";

export interface SupplyOptions extends PrepareOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly manifest: Manifest;
  readonly segmentBytes: number;
  readonly budget: SegmentBudget;
}

export interface SupplyEvents {
  /** Something became due. */
  wake(): void;
  /** An attempt to make a spare has ended, with one or with a shortage; or one came back from a trim. */
  onPrepared(): void;
  /** Something failed that the journal does not survive. */
  onFailed(error: unknown): void;
  /** Space is lacking, at most every 30 s; or there again after that was told (null). */
  onFull(reason: string | null): void;
}

const workingSet = 2;
/** Recycled files kept beyond the one that is needed next: as many as a checkpoint frees. */
const sparesMax = 4;
const fullToldEveryMs = 30_000;

/** Space was lacking when a segment was last to be made. */
interface Shortage {
  readonly message: string;
  readonly waitMs: number;
  readonly retryAt: number;
}

/**
 * Segments to come: spares, and what the budget lets be planned. Invariants: generations are dense up to `newest`; every file,
 * and every segment that entries are planned into, is charged to the budget once.
 */
export class SegmentSupply implements Job {
  readonly #options: SupplyOptions;
  readonly #events: SupplyEvents;
  readonly #spares: SegmentHeader[];
  readonly #member: BudgetMember;
  #newest: number;
  /** Generations up to here are charged. */
  #charged: number;
  /** Entries may be planned into generations up to here. */
  #admitted: number;
  #wanted = false;
  #shortage: Shortage | undefined;
  #fullToldAt = -Infinity;
  #fullTold = false;

  /** @param found what recovery found; `files` counts all of them */
  constructor(
    options: SupplyOptions,
    found: { spares: readonly SegmentHeader[]; newest: number; files: number },
    events: SupplyEvents,
  ) {
    this.#options = options;
    this.#events = events;
    this.#spares = [...found.spares];
    this.#newest = found.newest;
    this.#charged = found.newest;
    this.#admitted = found.newest;
    this.#member = options.budget.register(options.segmentBytes, workingSet);
    this.#member.adopt(found.files);
  }

  /** The highest generation there is a file of. */
  get newest(): number {
    return this.#newest;
  }

  get spares(): number {
    return this.#spares.length;
  }

  /** Why no segment can be made now; null when there is no such reason. */
  get shortage(): string | null {
    return this.#shortage?.message ?? null;
  }

  /** How long to wait before the next try while there is a shortage. */
  get retryMs(): number {
    return this.#shortage?.waitMs ?? 0;
  }

  /** The spare that is used next. */
  get oldest(): SegmentHeader | undefined {
    return this.#spares[0];
  }

  /** The oldest spare is in use now. */
  taken(): void {
    this.#spares.shift();
  }

  /**
   * Whether entries may be planned into the segment `generation`, which follows the newest planned one. Makes sure
   * it is being prepared.
   *
   * @throws ForebayError `disk_full`
   */
  admit(generation: number): void {
    if (generation <= this.#newest) {
      this.#admitted = Math.max(this.#admitted, generation);
      return;
    }
    if (this.#shortage !== undefined) {
      const { message, retryAt } = this.#shortage;
      if (this.#options.clock.now() >= retryAt) {
        this.prepare();
      }
      throw new ForebayError("disk_full", message);
    }
    if (generation > this.#charged) {
      if (!this.#member.charge()) {
        throw new ForebayError("disk_full", this.#budgetSpent());
      }
      this.#charged = generation;
    }
    this.#admitted = generation;
    this.prepare();
  }

  /** Makes the next segment ahead of need, unless one is there, under way, or out of reach. */
  prepareAhead(): void {
    const idle = this.spares === 0 && this.#shortage === undefined;
    if (idle && (this.#charged > this.#newest || this.#member.affords())) {
      this.prepare();
    }
  }

  /** Starts to make the next segment, unless that is under way. */
  prepare(): void {
    this.#wanted = true;
    this.#events.wake();
  }

  /**
   * Makes a segment when there is none to go on in.
   *
   * @throws ForebayError `disk_full`
   */
  async makeFirst(): Promise<void> {
    if (this.#charged === this.#newest) {
      // Whatever the budget says: a ring that cannot start cannot be trimmed either.
      this.#member.adopt(1);
      this.#charged += 1;
    }
    await this.#make();
    if (this.#shortage !== undefined) {
      throw new ForebayError("disk_full", this.#shortage.message);
    }
  }

  due(): boolean {
    return this.#wanted;
  }

  async run(): Promise<void> {
    try {
      await this.#make();
    } catch (error) {
      this.#events.onFailed(error);
      return;
    } finally {
      // Asked for meanwhile is asked for once.
      this.#wanted = false;
    }
    this.#events.onPrepared();
  }

  /** The next segment's header when a trimmed file is of use as one; undefined when the space is to be given back. */
  wantsRecycled(): SegmentHeader | undefined {
    const needed = this.#admitted > this.#newest;
    const kept = this.spares < sparesMax && !this.#options.budget.overdrawn;
    return needed || kept ? this.#nextHeader() : undefined;
  }

  /** A trimmed file became the segment of this header, durable under its name; its charge goes with it. */
  recycled(header: SegmentHeader): void {
    if (header.generation <= this.#charged) {
      // The segment was charged when it was planned; the file's own charge is one too many.
      this.#member.release(1);
    }
    this.#charged = Math.max(this.#charged, header.generation);
    this.#install(header);
    this.#events.onPrepared();
  }

  /** So many files are gone for good. */
  released(files: number): void {
    this.#member.release(files);
    this.#events.onPrepared();
  }

  /** The budget gets everything back. */
  deregister(): void {
    this.#member.deregister();
  }

  /** Ends with one spare more or with a shortage; any other failure is thrown. */
  async #make(): Promise<void> {
    if (!this.#chargeNext()) {
      this.#shortage = undefined;
      return;
    }
    const { disk, dir, segmentBytes } = this.#options;
    const { freeBytes } = await disk.space(dir);
    if (freeBytes < segmentBytes) {
      this.#noteShortage(freeBytes);
      return;
    }
    const header = this.#nextHeader();
    if (!(await prepareSegment(this.#options, header))) {
      this.#noteShortage(freeBytes);
      return;
    }
    this.#install(header);
  }

  #chargeNext(): boolean {
    const generation = this.#newest + 1;
    if (generation > this.#charged) {
      if (!this.#member.charge()) {
        return false;
      }
      this.#charged = generation;
    }
    return true;
  }

  /** The file is there, and charged. */
  #install(header: SegmentHeader): void {
    invariant(header.generation === this.#newest + 1, "generations are dense");
    invariant(header.generation <= this.#charged, "a segment is charged before it is there");
    this.#spares.push(header);
    this.#newest = header.generation;
    if (this.#shortage !== undefined) {
      this.#shortage = undefined;
      if (this.#fullTold) {
        this.#fullTold = false;
        this.#events.onFull(null);
      }
    }
  }

  #nextHeader(): SegmentHeader {
    const { clock, random, manifest, segmentBytes } = this.#options;
    return {
      id: manifest.id,
      generation: this.#newest + 1,
      createdAt: clock.now(),
      bytes: segmentBytes,
      salt: viewOf(random.bytes(4)).getUint32(0, true),
    };
  }

  #noteShortage(freeBytes: number): void {
    const { clock, dir, segmentBytes } = this.#options;
    const waitMs = nextBackoffMs(this.retryMs);
    const message = `a journal segment takes ${segmentBytes} bytes, the file system of ${dir} has ${freeBytes} free`;
    this.#shortage = { message, waitMs, retryAt: clock.now() + waitMs };
    // A segment that nobody planned into is not held.
    const needed = Math.max(this.#newest, this.#admitted);
    if (this.#charged > needed) {
      this.#member.release(this.#charged - needed);
      this.#charged = needed;
    }
    if (clock.now() - this.#fullToldAt >= fullToldEveryMs) {
      this.#fullToldAt = clock.now();
      this.#fullTold = true;
      this.#events.onFull(message);
    }
  }

  #budgetSpent(): string {
    const { budget, segmentBytes } = this.#options;
    return `the journal holds ${budget.heldBytes} of its budget of ${budget.capBytes} bytes, which leaves no room for a segment of ${segmentBytes}`;
  }
}
