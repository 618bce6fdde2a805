import type { Chunk } from "./chunk.ts";

interface Held {
  readonly chunk: Chunk;
  /** What it held when it was last put. */
  readonly bytes: number;
}

/** Chunks in memory by (run, number of the chunk in its index), the least recently used ones leaving first. */
export class ChunkCache {
  readonly #bytesMax: number;
  readonly #chunks: Map<string, Held> = new Map();
  #bytesHeld = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytesHeld(): number {
    return this.#bytesHeld;
  }

  get(run: number, index: number): Chunk | undefined {
    const key = keyOf(run, index);
    const held = this.#chunks.get(key);
    if (held === undefined) {
      return undefined;
    }
    this.#chunks.delete(key);
    this.#chunks.set(key, held);
    return held.chunk;
  }

  /** Also after a chunk has grown. */
  put(run: number, index: number, chunk: Chunk): void {
    const key = keyOf(run, index);
    const bytes = chunk.bytesHeld;
    this.#bytesHeld += bytes - (this.#chunks.get(key)?.bytes ?? 0);
    this.#chunks.delete(key);
    this.#chunks.set(key, { chunk, bytes });
  }

  /** Makes the cache as small as it should be. Before a load, not after it: what was loaded must be there to be read. */
  trim(): void {
    for (const [key, { bytes }] of this.#chunks) {
      if (this.#bytesHeld <= this.#bytesMax) {
        return;
      }
      this.#bytesHeld -= bytes;
      this.#chunks.delete(key);
    }
  }
}

const keyOf = (run: number, index: number): string => `${run}:${index}`;
