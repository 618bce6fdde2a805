import { ForebayError, invariant } from "../../shared/errors/mod.ts";
import type { Clock, Random } from "../../shared/ports/mod.ts";
import type { Disk } from "../storage/mod.ts";
import { CommitFile } from "./commitFile.ts";
import type { Counters } from "./counters.ts";
import { segmentName, viewOf } from "./layout.ts";
import type { Manifest } from "./manifest.ts";
import { prepareSegment } from "./prepare.ts";
import type { SegmentHeader } from "./segmentHeader.ts";

export interface RingOptions {
  readonly disk: Disk;
  /** The shard's directory. */
  readonly dir: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly manifest: Manifest;
  readonly counters: Counters;
  readonly segmentBytes: number;
  readonly budgetBytes: number;
  readonly direct: boolean;
  readonly volatile: boolean;
}

export interface RingEvents {
  /** An attempt to make a spare has ended, with one or with a shortage. */
  onPrepared(): void;
  /** Preparing failed for another reason than space. */
  onFailed(error: unknown): void;
}

const retryMsMin = 4;
const retryMsMax = 1024;

/** Space was lacking when a segment was last to be made. */
interface Shortage {
  readonly message: string;
  readonly waitMs: number;
  readonly retryAt: number;
}

/**
 * The segments: sealed ones, the active one, spares. Invariant: generations are dense from the manifest's head
 * to `newest`, and all of them together never exceed the budget but for what an earlier start left behind.
 */
export class Ring {
  readonly #options: RingOptions;
  readonly #spares: SegmentHeader[];
  #active: { readonly header: SegmentHeader; readonly file: CommitFile } | undefined;
  #newest: number;
  #preparing: Promise<void> | undefined;
  #shortage: Shortage | undefined;
  #events: RingEvents | undefined;

  constructor(options: RingOptions, found: { spares: readonly SegmentHeader[]; newest: number }) {
    this.#options = options;
    this.#spares = [...found.spares];
    this.#newest = found.newest;
  }

  /** Who is told; before the first `prepare`. */
  set events(events: RingEvents) {
    this.#events = events;
  }

  get active(): { readonly header: SegmentHeader; readonly file: CommitFile } {
    invariant(this.#active !== undefined, "the ring has an active segment");
    return this.#active;
  }

  get segments(): number {
    return this.#newest - this.#options.manifest.values.head + 1;
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
      return;
    }
    const { clock, segmentBytes, budgetBytes, manifest } = this.#options;
    if (this.#shortage !== undefined) {
      const { message, retryAt } = this.#shortage;
      if (clock.now() >= retryAt) {
        this.prepare();
      }
      throw new ForebayError("disk_full", message);
    }
    const held = (generation - manifest.values.head) * segmentBytes;
    if (held + segmentBytes > budgetBytes) {
      throw new ForebayError(
        "disk_full",
        `the journal holds ${held} of its budget of ${budgetBytes} bytes, which leaves no room for a segment of ${segmentBytes}`,
      );
    }
    this.prepare();
  }

  /** Makes the next segment ahead of need, unless one is there, under way, or out of reach. */
  prepareAhead(): void {
    const { segmentBytes, budgetBytes } = this.#options;
    const affordable = (this.segments + 1) * segmentBytes <= budgetBytes;
    if (!this.hasSpare && affordable && this.#shortage === undefined) {
      this.prepare();
    }
  }

  /** Starts to make the next segment, unless that is under way. */
  prepare(): void {
    this.#preparing ??= this.#makeSpare().then(
      () => {
        this.#preparing = undefined;
        this.#events?.onPrepared();
      },
      (error: unknown) => {
        this.#preparing = undefined;
        this.#events?.onFailed(error);
      },
    );
  }

  /** Resolves when nothing is being prepared. */
  async settled(): Promise<void> {
    await this.#preparing;
  }

  /**
   * Makes a segment and opens it as the active one, when there is none to go on in.
   *
   * @throws ForebayError `disk_full`
   */
  async openNew(): Promise<void> {
    await this.#makeSpare();
    if (this.#shortage !== undefined) {
      throw new ForebayError("disk_full", this.#shortage.message);
    }
    await this.activate();
  }

  /** Makes the oldest spare the active segment. The caller has sealed the active one. */
  async activate(): Promise<void> {
    const header = this.#spares[0];
    invariant(header !== undefined, "a spare is there");
    await this.open(header);
    this.#spares.shift();
  }

  /** Opens `header`'s segment as the active one; the manifest names it before anything is written to it. */
  async open(header: SegmentHeader): Promise<void> {
    const { disk, dir, direct, counters, manifest } = this.#options;
    const path = `${dir}/${segmentName(header.generation)}`;
    const file = await CommitFile.open(disk, path, direct, counters);
    try {
      const { head, active } = manifest.values;
      if (active !== header.generation) {
        await manifest.update({ head, active: header.generation });
      }
    } catch (error) {
      await file.close();
      throw error;
    }
    const before = this.#active;
    this.#active = { header, file };
    await before?.file.close();
  }

  async close(): Promise<void> {
    await this.settled();
    await this.#active?.file.close();
    await this.#options.manifest.close();
  }

  /** Ends with one spare more or with a shortage; any other failure is thrown. */
  async #makeSpare(): Promise<void> {
    const { disk, dir, clock, random, manifest, segmentBytes } = this.#options;
    const { freeBytes } = await disk.space(dir);
    if (freeBytes < segmentBytes) {
      this.#noteShortage(freeBytes);
      return;
    }
    const header: SegmentHeader = {
      id: manifest.id,
      generation: this.#newest + 1,
      createdAt: clock.now(),
      bytes: segmentBytes,
      salt: viewOf(random.bytes(4)).getUint32(0, true),
    };
    if (!(await prepareSegment(this.#options, header))) {
      this.#noteShortage(freeBytes);
      return;
    }
    this.#spares.push(header);
    this.#newest = header.generation;
    this.#shortage = undefined;
  }

  #noteShortage(freeBytes: number): void {
    const { clock, dir, segmentBytes } = this.#options;
    const waitMs = Math.min(retryMsMax, Math.max(retryMsMin, this.retryMs * 2));
    this.#shortage = {
      message: `a journal segment takes ${segmentBytes} bytes, the file system of ${dir} has ${freeBytes} free`,
      waitMs,
      retryAt: clock.now() + waitMs,
    };
  }
}
