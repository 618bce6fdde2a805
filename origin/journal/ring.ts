import { ForebayError, invariant } from "../../shared/errors/mod.ts";
import type { Clock, Random } from "../../shared/ports/mod.ts";
import type { Lsn } from "../../shared/ids/mod.ts";
import type { Disk } from "../storage/mod.ts";
import { nextBackoffMs } from "./backoff.ts";
import type { BudgetMember, SegmentBudget } from "./budget.ts";
import { CommitFile } from "./commitFile.ts";
import type { Counters } from "./counters.ts";
import { RingReader } from "./entryReader.ts";
import { segmentName, viewOf } from "./layout.ts";
import { SegmentManager } from "./manager.ts";
import type { Manifest } from "./manifest.ts";
import { prepareSegment } from "./prepare.ts";
import type { SegmentHeader } from "./segmentHeader.ts";
import { SegmentLists, type FoundSegments } from "./segments.ts";
import { Trimmer } from "./trim.ts";
import type { EntryReader } from "./types.ts";
import type { Watermark } from "./watermark.ts";

export interface RingOptions {
  readonly disk: Disk;
  /** The shard's directory. */
  readonly dir: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly manifest: Manifest;
  readonly watermark: Watermark;
  readonly counters: Counters;
  readonly segmentBytes: number;
  readonly budget: SegmentBudget;
  readonly direct: boolean;
  readonly volatile: boolean;
}

export interface RingEvents {
  /** An attempt to make a spare has ended, with one or with a shortage; or one came back from a trim. */
  onPrepared(): void;
  /** Something failed that the journal does not survive. */
  onFailed(error: unknown): void;
  /** Space is lacking, or there again (null). At most every 30 s while it lasts. */
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
 * The segments: sealed ones, the active one, spares. Invariants: generations are dense from the head to `newest`; every
 * file, and every segment that entries are planned into, is charged to the budget once.
 */
export class Ring {
  readonly segments: SegmentLists;
  readonly #options: RingOptions;
  readonly #spares: SegmentHeader[];
  readonly #member: BudgetMember;
  readonly #manager: SegmentManager;
  readonly #trimmer: Trimmer;
  #active: { readonly header: SegmentHeader; readonly file: CommitFile } | undefined;
  #newest: number;
  /** Generations up to here are charged. */
  #charged: number;
  /** Entries may be planned into generations up to here. */
  #admitted: number;
  #spareWanted = false;
  #shortage: Shortage | undefined;
  #fullToldAt = -Infinity;
  #failedClosed = false;
  #events: RingEvents | undefined;

  constructor(options: RingOptions, found: FoundSegments) {
    this.#options = options;
    this.segments = new SegmentLists(found);
    this.#spares = [...found.spares];
    this.#newest = found.newest;
    this.#charged = found.newest;
    this.#admitted = found.newest;
    this.#member = options.budget.register(options.segmentBytes, workingSet);
    this.#member.adopt(this.files);
    this.#trimmer = new Trimmer(options, {
      segments: this.segments,
      wantsRecycled: () => this.#wantsRecycled(),
      recycled: (header) => {
        this.#recycled(header);
      },
      released: (files) => {
        this.#member.release(files);
        this.#events?.onPrepared();
      },
      failed: (error) => {
        this.#failed(error);
      },
      wake: () => {
        this.#manager.wake();
      },
    });
    const spare = { due: () => this.#spareWanted, run: () => this.#prepareOne() };
    this.#manager = new SegmentManager([spare, this.#trimmer]);
  }

  /** Who is told. What recovery left to be recycled goes from then on. */
  set events(events: RingEvents) {
    this.#events = events;
    this.#manager.wake();
  }

  get active(): { readonly header: SegmentHeader; readonly file: CommitFile } {
    invariant(this.#active !== undefined, "the ring has an active segment");
    return this.#active;
  }

  /** Segment files there are. */
  get files(): number {
    return this.segments.below + this.#newest - this.segments.head + 1;
  }

  get spares(): number {
    return this.#spares.length;
  }

  /** LSN: entries up to it are trimmed, and the disk knows. */
  get trimmed(): number {
    return this.#options.watermark.values.trimmed;
  }

  /** Times the manager of the files went from sleep to work. */
  get wakes(): number {
    return this.#manager.wakes;
  }

  /** Why no segment can be made now; null when there is no such reason. */
  get shortage(): string | null {
    return this.#shortage?.message ?? null;
  }

  /** How long to wait before the next try while there is a shortage. */
  get retryMs(): number {
    return this.#shortage?.waitMs ?? 0;
  }

  get hasSpare(): boolean {
    return this.#spares.length > 0;
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
    if (this.hasSpare || this.#shortage !== undefined) {
      return;
    }
    if (this.#charged > this.#newest || this.#member.affords()) {
      this.prepare();
    }
  }

  /** Starts to make the next segment, unless that is under way. */
  prepare(): void {
    this.#spareWanted = true;
    this.#manager.wake();
  }

  /** Entries up to `mark` are needed no more. Their segments go as soon as they can. */
  trim(mark: number): void {
    this.#trimmer.raise(mark);
    this.#manager.wake();
  }

  /** Entries up to `durable` are durable. */
  advanced(durable: number): void {
    if (this.segments.advanced(durable)) {
      this.#manager.wake();
    }
  }

  /** @throws ForebayError `offset_gone` */
  reader(from: Lsn, durable: () => number): EntryReader {
    return new RingReader({ ring: this, durable, ...this.#options }, from);
  }

  /** The segment in use that holds, or will hold, the entry `lsn`; undefined when it is trimmed. */
  locate(lsn: number): SegmentHeader | undefined {
    if (lsn <= this.trimmed) {
      return undefined;
    }
    const { sealed } = this.segments;
    return sealed.find(({ lastLsn }) => lastLsn >= lsn)?.header ?? this.active.header;
  }

  /** The segment after `generation`, once it is in use. */
  successor(generation: number): SegmentHeader | undefined {
    const { header } = this.active;
    return header.generation === generation + 1 ? header : this.segments.after(generation);
  }

  /** A reader stands in a segment: its file stays as it is until `unpin`. */
  pin(generation: number): void {
    this.segments.pin(generation);
  }

  /** A reader lets a segment go. */
  unpin(generation: number): void {
    this.segments.unpin(generation);
    this.#manager.wake();
  }

  /** Nothing more is trimmed: the journal failed. */
  fail(): void {
    this.#failedClosed = true;
    this.#trimmer.stop();
  }

  /** Resolves when nothing is being done to the files. */
  settled(): Promise<void> {
    return this.#manager.settled();
  }

  /**
   * Makes a segment and opens it as the active one, when there is none to go on in.
   *
   * @throws ForebayError `disk_full`
   */
  async openNew(): Promise<void> {
    if (this.#charged === this.#newest) {
      // Whatever the budget says: a ring that cannot start cannot be trimmed either.
      this.#member.adopt(1);
      this.#charged += 1;
    }
    await this.#makeSpare();
    if (this.#shortage !== undefined) {
      throw new ForebayError("disk_full", this.#shortage.message);
    }
    await this.#activateSpare();
  }

  /**
   * Makes the oldest spare the active segment. The caller has sealed the active one.
   *
   * @param lastLsn the last LSN in it or before it
   */
  async activate(lastLsn: number): Promise<void> {
    const { header } = this.active;
    await this.#activateSpare();
    this.segments.seal({ header, lastLsn });
    this.#manager.wake();
  }

  /** Opens `header`'s segment as the active one; the manifest names it before anything is written to it. */
  async open(header: SegmentHeader): Promise<void> {
    const { disk, dir, direct, counters, manifest } = this.#options;
    const path = `${dir}/${segmentName(header.generation)}`;
    const file = await CommitFile.open(disk, path, direct, counters);
    try {
      await manifest.update({ active: header.generation });
    } catch (error) {
      await file.close();
      throw error;
    }
    const before = this.#active;
    this.#active = { header, file };
    await before?.file.close();
  }

  /** The start failed: the budget gets everything back. */
  abandon(): void {
    this.#member.deregister();
  }

  /** The final mark, then the handles; the budget gets everything back. */
  async close(): Promise<void> {
    const { manifest, watermark } = this.#options;
    try {
      await this.#manager.stop();
      if (!this.#failedClosed) {
        await this.#trimmer.finalMark();
      }
      this.#trimmer.stop();
      await this.#active?.file.close();
      await watermark.close();
      await manifest.close();
    } finally {
      this.#member.deregister();
    }
  }

  #failed(error: unknown): void {
    this.fail();
    this.#events?.onFailed(error);
  }

  async #activateSpare(): Promise<void> {
    const header = this.#spares[0];
    invariant(header !== undefined, "a spare is there");
    await this.open(header);
    this.#spares.shift();
  }

  async #prepareOne(): Promise<void> {
    try {
      await this.#makeSpare();
    } catch (error) {
      this.#failed(error);
      return;
    } finally {
      // Asked for meanwhile is asked for once.
      this.#spareWanted = false;
    }
    this.#events?.onPrepared();
  }

  /** Ends with one spare more or with a shortage; any other failure is thrown. */
  async #makeSpare(): Promise<void> {
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
      this.#fullToldAt = -Infinity;
      this.#events?.onFull(null);
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

  #wantsRecycled(): SegmentHeader | undefined {
    const needed = this.#admitted > this.#newest;
    const spare = this.#spares.length < sparesMax && !this.#options.budget.overdrawn;
    return needed || spare ? this.#nextHeader() : undefined;
  }

  #recycled(header: SegmentHeader): void {
    if (header.generation <= this.#charged) {
      // The segment was charged when it was planned; the file's own charge is one too many.
      this.#member.release(1);
    }
    this.#charged = Math.max(this.#charged, header.generation);
    this.#install(header);
    this.#events?.onPrepared();
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
      this.#events?.onFull(message);
    }
  }

  #budgetSpent(): string {
    const { budget, segmentBytes } = this.#options;
    return `the journal holds ${budget.heldBytes} of its budget of ${budget.capBytes} bytes, which leaves no room for a segment of ${segmentBytes}`;
  }
}
