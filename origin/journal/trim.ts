import type { Clock, Timer } from "../../shared/ports/mod.ts";
import { errorCode } from "../storage/mod.ts";
import type { Job } from "./manager.ts";
import type { Manifest } from "./manifest.ts";
import { nextBackoffMs } from "./backoff.ts";
import { segmentName } from "./layout.ts";
import { beginRecycled, finishRecycled, type PrepareOptions } from "./prepare.ts";
import type { SegmentHeader } from "./segmentHeader.ts";
import type { SegmentLists } from "./segments.ts";
import type { SegmentSupply } from "./supply.ts";
import type { Watermark } from "./watermark.ts";

export interface TrimOptions extends PrepareOptions {
  readonly clock: Clock;
  readonly manifest: Manifest;
  readonly watermark: Watermark;
}

/** What a trim works on. */
export interface TrimRing {
  readonly segments: SegmentLists;
  readonly supply: Pick<SegmentSupply, "wantsRecycled" | "recycled" | "released">;
  failed(error: unknown): void;
  wake(): void;
}

/**
 * Takes space back. The literal order of FORMAT.md: watermark written and synced → directory synced → manifest synced →
 * files recycled or unlinked, oldest first, stopping at the first that fails → directory synced → budget released.
 */
export class Trimmer implements Job {
  readonly #options: TrimOptions;
  readonly #ring: TrimRing;
  /** LSN: what the owner has asked for; in memory only until a segment can go or the journal is closed. */
  #mark: number;
  #retry: Timer | undefined;
  #waitMs = 0;
  #stopped = false;

  constructor(options: TrimOptions, ring: TrimRing) {
    this.#options = options;
    this.#ring = ring;
    this.#mark = options.watermark.values.trimmed;
  }

  /** Raises the mark; a lower one than before changes nothing. */
  raise(mark: number): void {
    this.#mark = Math.max(this.#mark, mark);
  }

  due(): boolean {
    if (this.#stopped || this.#retry !== undefined) {
      return false;
    }
    const { segments } = this.#ring;
    return segments.removable !== undefined || segments.freeable(this.#mark).length > 0;
  }

  async run(): Promise<void> {
    try {
      if (await this.#moveHead()) {
        await this.#removeFiles();
      }
    } catch (error) {
      this.#ring.failed(error);
    }
  }

  /** No more files are touched: the journal failed, or is being closed. */
  stop(): void {
    this.#stopped = true;
    this.#retry?.cancel();
    this.#retry = undefined;
  }

  /** Writes the mark down before the journal is closed. What fails costs a second replay, no more. */
  async finalMark(): Promise<void> {
    const { watermark, manifest } = this.#options;
    const { trimmed, head } = watermark.values;
    if (this.#mark <= trimmed) {
      return;
    }
    try {
      await watermark.advance({ trimmed: this.#mark, head }, manifest.id);
    } catch {
      // A file half made goes at the next start.
    }
  }

  /** Afterwards no start needs the freed segments. False: to be tried again later. */
  async #moveHead(): Promise<boolean> {
    const { watermark, manifest, disk, dir, counters } = this.#options;
    const free = this.#ring.segments.freeable(this.#mark);
    const last = free.at(-1);
    if (last === undefined) {
      return true;
    }
    const head = last.header.generation + 1;
    const values = { trimmed: this.#mark, head };
    if (!(await this.#attempt(() => watermark.advance(values, manifest.id)))) {
      return false;
    }
    await disk.syncDirectory(dir);
    counters.syncs += 1;
    if (!(await this.#attempt(() => manifest.update({ head })))) {
      return false;
    }
    this.#ring.segments.bury(free.length);
    return true;
  }

  async #removeFiles(): Promise<void> {
    const { disk, dir, counters } = this.#options;
    const { segments } = this.#ring;
    let gone = 0;
    for (let next = segments.removable; next !== undefined; next = segments.removable) {
      const generation = next;
      const header = this.#ring.supply.wantsRecycled();
      if (!(await this.#attempt(() => this.#detach(generation, header)))) {
        break;
      }
      segments.removed();
      if (header !== undefined && (await finishRecycled(this.#options, header))) {
        this.#ring.supply.recycled(header);
      } else {
        gone += 1;
      }
    }
    if (gone > 0) {
      await disk.syncDirectory(dir);
      counters.syncs += 1;
      this.#ring.supply.released(gone);
    }
  }

  async #detach(generation: number, header: SegmentHeader | undefined): Promise<void> {
    const { disk, dir } = this.#options;
    if (header !== undefined) {
      await beginRecycled(this.#options, generation, header.generation);
      return;
    }
    try {
      await disk.unlink(`${dir}/${segmentName(generation)}`);
    } catch (error) {
      // Somebody else removed it: what we want is so.
      if (errorCode(error) !== "ENOENT") {
        throw error;
      }
    }
  }

  /** A step that moves nothing when it fails, and is tried again later then. */
  async #attempt(step: () => Promise<void>): Promise<boolean> {
    try {
      await step();
      this.#waitMs = 0;
      return true;
    } catch (error) {
      if (errorCode(error) === undefined) {
        throw error;
      }
      this.#waitMs = nextBackoffMs(this.#waitMs);
      this.#retry = this.#options.clock.after(this.#waitMs, () => {
        this.#retry = undefined;
        this.#ring.wake();
      });
      return false;
    }
  }
}
