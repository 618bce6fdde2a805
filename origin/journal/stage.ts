import { limits } from "../../shared/limits.ts";
import { blockBytes } from "../storage/mod.ts";
import type { Areas } from "./areas.ts";
import { Batch, type Place } from "./batch.ts";
import { batchHeaderBytes, dataEnd, entryHeaderBytes, padded } from "./layout.ts";

export interface StageOptions {
  readonly areas: Areas;
  readonly segmentBytes: number;
  /** Throws ForebayError `disk_full` when no entry may be planned into this segment. */
  readonly admit: (generation: number) => void;
  /** The plan of a segment passed three quarters of it. */
  readonly onFilling: () => void;
}

/**
 * Entries that wait for a slot: closed batches in order, and the open one that takes more. The place of
 * every batch is planned when it is opened, so whether there is room is known before an entry is taken.
 */
export class Stage {
  /** Takes the next entry while it fits; see `makeRoom`. */
  open: Batch | undefined;
  readonly #options: StageOptions;
  readonly #closed: Batch[] = [];
  /** Where the batch after the open one begins, were the open one closed empty. */
  #next: Place;

  constructor(options: StageOptions, next: Place) {
    this.#options = options;
    this.#next = next;
    this.#tellFilling();
  }

  get closed(): readonly Batch[] {
    return this.#closed;
  }

  /**
   * Opens a batch with room for an entry of `length` bytes and closes the one that has none.
   *
   * @param lsn of that entry
   * @param bytesTarget the batch takes entries up to this size, a larger single one alone
   * @throws ForebayError `disk_full`, nothing changed
   */
  makeRoom(length: number, lsn: number, bytesTarget: number): Batch {
    const { segmentBytes, areas, admit } = this.#options;
    const needed = batchHeaderBytes + entryHeaderBytes + length;
    let { generation, position } = this.#after();
    if (position + padded(needed) > dataEnd(segmentBytes)) {
      generation += 1;
      position = blockBytes;
    }
    admit(generation);
    this.close();
    this.#next = { generation, position };
    const area = areas.take(padded(needed));
    const room = Math.min(area.length, dataEnd(segmentBytes) - position);
    const limit = Math.min(room, Math.max(bytesTarget, needed));
    this.open = new Batch(area, this.#next, { firstLsn: lsn, limit, flags: 0 });
    return this.open;
  }

  /** Closes the open batch: it takes no more entries and waits to be shifted. */
  close(): void {
    if (this.open === undefined) {
      return;
    }
    this.#closed.push(this.open);
    this.#next = this.#after();
    this.open = undefined;
    this.#tellFilling();
  }

  /** The open batch takes no more: the next entry needs `makeRoom` and its admission. */
  refuseMore(): void {
    if (this.open !== undefined) {
      this.open.limit = this.open.end;
    }
  }

  /** Takes the oldest closed batch out. */
  shift(): Batch | undefined {
    return this.#closed.shift();
  }

  /** Plans one block for a batch without entries, which needs no admission; undefined when the segment has none left. */
  control(area: Uint8Array, lsn: number): Batch | undefined {
    const place = this.#after();
    if (place.position + blockBytes > dataEnd(this.#options.segmentBytes)) {
      return undefined;
    }
    this.close();
    this.#next = { ...place, position: place.position + blockBytes };
    return new Batch(area, place, { firstLsn: lsn, limit: 0, flags: 0 });
  }

  #tellFilling(): void {
    if (this.#next.position >= this.#options.segmentBytes * 0.75) {
      this.#options.onFilling();
    }
  }

  #after(): Place {
    const { generation, position } = this.#next;
    return { generation, position: position + (this.open?.bytes ?? 0) };
  }
}

/** The largest entry a journal of this segment size takes. */
export function entryBytesMaxOf(segmentBytes: number): number {
  const room = dataEnd(segmentBytes) - blockBytes - batchHeaderBytes - entryHeaderBytes;
  return Math.min(limits.entryBytesMax, room);
}
