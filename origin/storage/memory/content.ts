import type { Random } from "../../../shared/ports/mod.ts";

/** What a device persists or loses as one piece. */
export const sectorBytes = 512;

/** A write that no sync has confirmed yet. */
export interface PendingWrite {
  readonly position: number;
  readonly bytes: Uint8Array;
  /** The call has resolved; until then a sync does not cover it. */
  done: boolean;
  /** A sync failed over it. The system forgets such pages, so no later sync brings it to the device. */
  lost: boolean;
  /** First bytes of sectors that a later write has replaced for good. */
  readonly replaced: Set<number>;
}

/** Bytes that several contents may share: whoever writes while they are shared copies them first. */
class Image {
  /** Longer than `size` at times, so that a file written piece by piece is not copied each time. */
  bytes: Uint8Array;
  size: number;
  shared: boolean;

  constructor(bytes: Uint8Array, shared: boolean) {
    this.bytes = bytes;
    this.size = bytes.length;
    this.shared = shared;
  }

  get content(): Uint8Array {
    return this.bytes.length === this.size ? this.bytes : this.bytes.subarray(0, this.size);
  }

  write(bytes: Uint8Array, position: number): void {
    const end = position + bytes.length;
    if (end > this.bytes.length || this.shared) {
      const grows = end > this.bytes.length;
      const next = new Uint8Array(grows ? Math.max(end, this.size * 2) : this.bytes.length);
      next.set(this.content);
      this.bytes = next;
      this.shared = false;
    }
    this.bytes.set(bytes, position);
    this.size = Math.max(this.size, end);
  }
}

/** The bytes of one file: as programs see them, and as they are certain to outlive a crash. */
export class Content {
  readonly #visible: Image;
  readonly #synced: Image;
  #pending: PendingWrite[] = [];

  constructor(bytes: Uint8Array = new Uint8Array(0)) {
    this.#visible = new Image(bytes, true);
    this.#synced = new Image(bytes, true);
  }

  get size(): number {
    return this.#visible.size;
  }

  get bytes(): Uint8Array {
    return this.#visible.content;
  }

  /** A write was submitted: from here on a crash may leave any of its sectors behind. */
  submit(bytes: Uint8Array, position: number): PendingWrite {
    const write = {
      position,
      bytes: bytes.slice(),
      done: false,
      lost: false,
      replaced: new Set<number>(),
    };
    this.#pending.push(write);
    return write;
  }

  /** The write resolves: programs see it, and a sync that starts now covers it. */
  complete(write: PendingWrite): void {
    this.#visible.write(write.bytes, write.position);
    write.done = true;
  }

  /** The writes a sync that starts now will cover. */
  covered(): PendingWrite[] {
    return this.#pending.filter((write) => write.done && !write.lost);
  }

  synced(writes: readonly PendingWrite[]): void {
    const confirmed = new Set(writes);
    const older: PendingWrite[] = [];
    for (const write of this.#pending) {
      if (confirmed.has(write)) {
        this.#synced.write(write.bytes, write.position);
        replace(older, write);
      } else {
        older.push(write);
      }
    }
    this.#pending = older;
  }

  /** The content after a crash: what was synced, and of the rest each sector with the chance `survival`. */
  survivor(random: Random, survival: number): Content {
    this.#synced.shared = true;
    const image = new Image(this.#synced.content, true);
    for (const write of this.#pending) {
      for (let from = 0; from < write.bytes.length; from += sectorBytes) {
        if (random.next() < survival && !write.replaced.has(write.position + from)) {
          image.write(write.bytes.subarray(from, from + sectorBytes), write.position + from);
        }
      }
    }
    return new Content(image.content);
  }
}

/** Sectors of `older` writes under `newer`, which is synced, can come back no more. */
function replace(older: readonly PendingWrite[], newer: PendingWrite): void {
  const end = newer.position + newer.bytes.length;
  for (const { position, bytes, replaced } of older) {
    for (let from = position; from < position + bytes.length; from += sectorBytes) {
      if (from >= newer.position && from < end) {
        replaced.add(from);
      }
    }
  }
}
