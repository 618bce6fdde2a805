import { invariant } from "../../shared/errors/mod.ts";
import type { Lsn } from "../../shared/ids/mod.ts";
import { CommitFile } from "./commitFile.ts";
import { RingReader } from "./entryReader.ts";
import { segmentName } from "./layout.ts";
import { SegmentManager } from "./manager.ts";
import type { SegmentHeader } from "./segmentHeader.ts";
import { SegmentLists, type FoundSegments } from "./segments.ts";
import { SegmentSupply, type SupplyEvents, type SupplyOptions } from "./supply.ts";
import { Trimmer } from "./trim.ts";
import type { EntryReader, JournalStats } from "./types.ts";
import type { Watermark } from "./watermark.ts";

export interface RingOptions extends SupplyOptions {
  readonly watermark: Watermark;
  readonly direct: boolean;
}

export type RingEvents = Omit<SupplyEvents, "wake">;

/** The segments of one journal: sealed ones, the active one, and the supply of those to come. */
export class Ring {
  readonly segments: SegmentLists;
  readonly supply: SegmentSupply;
  readonly #options: RingOptions;
  readonly #manager: SegmentManager;
  readonly #trimmer: Trimmer;
  #active: { readonly header: SegmentHeader; readonly file: CommitFile } | undefined;
  #failedClosed = false;
  #events: RingEvents | undefined;

  constructor(options: RingOptions, found: FoundSegments) {
    this.#options = options;
    this.segments = new SegmentLists(found);
    const wake = (): void => {
      this.#manager.wake();
    };
    const failed = (error: unknown): void => {
      this.fail();
      this.#events?.onFailed(error);
    };
    const files = found.below.length + found.newest - found.head + 1;
    this.supply = new SegmentSupply(
      options,
      { ...found, files },
      {
        wake,
        onPrepared: () => this.#events?.onPrepared(),
        onFailed: failed,
        onFull: (reason) => this.#events?.onFull(reason),
      },
    );
    const { segments, supply } = this;
    this.#trimmer = new Trimmer(options, { segments, supply, failed, wake });
    this.#manager = new SegmentManager([this.supply, this.#trimmer]);
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

  /** Segment files there are, spares counted. */
  get files(): number {
    return this.segments.below + this.supply.newest - this.segments.head + 1;
  }

  /** LSN: entries up to it are trimmed, and the disk knows. */
  get trimmed(): number {
    return this.#options.watermark.values.trimmed;
  }

  gauges(): Pick<JournalStats, "segments" | "spares" | "bytesHeld" | "full"> {
    const { files: segments } = this;
    const { spares, shortage } = this.supply;
    const bytesHeld = segments * this.#options.segmentBytes;
    return { segments, spares, bytesHeld, full: shortage };
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
    await this.supply.makeFirst();
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
    this.supply.deregister();
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
      this.supply.deregister();
    }
  }

  async #activateSpare(): Promise<void> {
    const header = this.supply.oldest;
    invariant(header !== undefined, "a spare is there");
    await this.open(header);
    this.supply.taken();
  }
}
