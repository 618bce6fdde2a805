import type { Lsn } from "../../shared/ids/mod.ts";
import type { StreamState } from "./state.ts";

const initialSlots = 1024;
const flag = { closed: 1, givenUp: 2 } as const;

/** Ended, and no fork reads it: forks of an ended stream only become fewer. */
export const isGivenUp = (stream: StreamState): boolean => stream.ended && stream.forks === 0;

/**
 * Which streams the entries not yet durable have changed, and to what: a ring of (LSN, stream, tail, flags) in LSN
 * order. A durable advance visits just these and moves each stream's durable part, so that readers see durable bytes
 * only. The ring is reused; nothing is allocated per append.
 */
export class TouchedStreams {
  /** Told of every change that became durable; `created` with the one that made the stream. */
  heard: ((stream: StreamState, created: boolean) => void) | null = null;
  #mask = initialSlots - 1;
  #head = 0;
  #size = 0;
  #lsns = new Float64Array(initialSlots);
  #records = new Float64Array(initialSlots);
  #bytes = new Float64Array(initialSlots);
  #flags = new Uint8Array(initialSlots);
  #streams: (StreamState | null)[] = Array.from({ length: initialSlots }, () => null);
  #advances = 0;

  /** Notes the state of `stream` after the entry `lsn`. */
  push(lsn: Lsn, stream: StreamState): void {
    if (this.#size > this.#mask) {
      this.#grow();
    }
    const slot = (this.#head + this.#size) & this.#mask;
    this.#size += 1;
    this.#lsns[slot] = lsn;
    this.#records[slot] = stream.record;
    this.#bytes[slot] = stream.byte;
    this.#flags[slot] = (stream.closed ? flag.closed : 0) | (isGivenUp(stream) ? flag.givenUp : 0);
    this.#streams[slot] = stream;
  }

  /**
   * Moves the durable part of every stream changed at or below `durable`. Calls `onGivenUp` for those whose data
   * nobody may read any more, durably. Returns the followed ones, each once.
   */
  advance(durable: Lsn, onGivenUp: (stream: StreamState) => void): StreamState[] {
    const followed: StreamState[] = [];
    this.#advances += 1;
    while (this.#size > 0) {
      const slot = this.#head;
      const stream = this.#streams[slot];
      if ((this.#lsns[slot] ?? 0) > durable || stream === null || stream === undefined) {
        break;
      }
      const flags = this.#flags[slot] ?? 0;
      stream.durableRecord = this.#records[slot] ?? 0;
      stream.durableByte = this.#bytes[slot] ?? 0;
      stream.durableClosed = (flags & flag.closed) !== 0;
      if ((flags & flag.givenUp) !== 0) {
        onGivenUp(stream);
      }
      this.heard?.(stream, this.#lsns[slot] === stream.createdLsn);
      if (stream.followers !== null && stream.toldAt !== this.#advances) {
        stream.toldAt = this.#advances;
        followed.push(stream);
      }
      this.#streams[slot] = null;
      this.#head = (slot + 1) & this.#mask;
      this.#size -= 1;
    }
    return followed;
  }

  #grow(): void {
    const old = this.#mask + 1;
    const slots = old * 2;
    const lsns = new Float64Array(slots);
    const records = new Float64Array(slots);
    const bytes = new Float64Array(slots);
    const flags = new Uint8Array(slots);
    const streams: (StreamState | null)[] = Array.from({ length: slots }, () => null);
    for (let i = 0; i < this.#size; i++) {
      const from = (this.#head + i) & this.#mask;
      lsns[i] = this.#lsns[from] ?? 0;
      records[i] = this.#records[from] ?? 0;
      bytes[i] = this.#bytes[from] ?? 0;
      flags[i] = this.#flags[from] ?? 0;
      streams[i] = this.#streams[from] ?? null;
    }
    this.#lsns = lsns;
    this.#records = records;
    this.#bytes = bytes;
    this.#flags = flags;
    this.#streams = streams;
    this.#head = 0;
    this.#mask = slots - 1;
  }
}
