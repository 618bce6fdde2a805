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

/** The bytes of one file: as programs see them, and as they are certain to outlive a crash. */
export class Content {
  #visible: Uint8Array = new Uint8Array(0);
  #size = 0;
  #synced: Uint8Array = new Uint8Array(0);
  #pending: PendingWrite[] = [];

  get size(): number {
    return this.#size;
  }

  get bytes(): Uint8Array {
    return this.#visible.subarray(0, this.#size);
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
    const end = write.position + write.bytes.length;
    this.#visible = grown(this.#visible, end);
    this.#visible.set(write.bytes, write.position);
    this.#size = Math.max(this.#size, end);
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
        this.#synced = written(this.#synced, write.bytes, write.position);
        replace(older, write);
      } else {
        older.push(write);
      }
    }
    this.#pending = this.#pending.filter((write) => !confirmed.has(write));
  }

  /** The content after a crash: what was synced, and of the rest each sector with the chance `survival`. */
  survivor(random: Random, survival: number): Content {
    let image: Uint8Array = this.#synced.slice();
    for (const write of this.#pending) {
      for (let from = 0; from < write.bytes.length; from += sectorBytes) {
        if (random.next() < survival && !write.replaced.has(write.position + from)) {
          const sector = write.bytes.subarray(from, from + sectorBytes);
          image = written(image, sector, write.position + from);
        }
      }
    }
    const content = new Content();
    content.#visible = image;
    content.#size = image.length;
    content.#synced = image.slice();
    return content;
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

/** `bytes` with room for `size`; doubles, so that a file written piece by piece is not copied each time. */
function grown(bytes: Uint8Array, size: number): Uint8Array {
  if (bytes.length >= size) {
    return bytes;
  }
  const larger = new Uint8Array(Math.max(size, bytes.length * 2));
  larger.set(bytes);
  return larger;
}

function written(image: Uint8Array, bytes: Uint8Array, position: number): Uint8Array {
  const end = position + bytes.length;
  let target = image;
  if (end > image.length) {
    target = new Uint8Array(end);
    target.set(image);
  }
  target.set(bytes, position);
  return target;
}
