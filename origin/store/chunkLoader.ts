import { ForebayError, invariant } from "../../shared/errors/mod.ts";
import { readFully } from "../storage/mod.ts";
import { Chunk } from "./chunk.ts";
import type { ChunkCache } from "./chunkCache.ts";
import type { Counters } from "./counters.ts";
import type { ChunkRef, Run } from "./run.ts";
import { type ChunkPlace, tableEntryBytes } from "./runIndex.ts";
import type { RecordRange } from "./types.ts";

/**
 * Reads tables and payloads of chunks into the cache: exactly the extents asked for, each once. Loads of one chunk
 * follow each other, so that what two readers want is read for the first of them.
 */
export class ChunkLoader {
  readonly #cache: ChunkCache;
  readonly #counters: Counters;
  readonly #busy: Map<string, Promise<Chunk>> = new Map();

  constructor(cache: ChunkCache, counters: Counters) {
    this.#cache = cache;
    this.#counters = counters;
  }

  /** @throws ForebayError `store_failed` */
  table(ref: ChunkRef): Promise<Chunk> {
    return this.#inTurn(ref, () => this.#chunk(ref, false));
  }

  /**
   * Reads of the records from `from` on, before `to`, those that fit in `maxBytes` and the chunk; at least the first.
   *
   * @param whole all of the chunk is wanted: then payload and table are one read
   * @throws ForebayError `store_failed`
   */
  records(ref: ChunkRef, { from, to, maxBytes }: RecordRange, whole: boolean): Promise<Chunk> {
    return this.#inTurn(ref, async () => {
      const place = placeOf(ref);
      const chunk = await this.#chunk(ref, whole && place.payloadBytes <= maxBytes);
      if (!chunk.lost) {
        await this.#payloads(ref, chunk, from, lastWithin(chunk, from, to, maxBytes));
      }
      return chunk;
    });
  }

  /** Nothing is being read. */
  async settled(): Promise<void> {
    while (this.#busy.size > 0) {
      await Promise.allSettled(this.#busy.values());
    }
  }

  async #chunk(ref: ChunkRef, whole: boolean): Promise<Chunk> {
    const known = this.#cache.get(ref.run.run, ref.index);
    if (known !== undefined) {
      return known;
    }
    const place = placeOf(ref);
    const tableBytes = place.records * tableEntryBytes;
    const payloadBytes = whole ? place.payloadBytes : 0;
    const bytes = new Uint8Array(payloadBytes + tableBytes);
    await this.#read(ref, bytes, place.place + place.payloadBytes - payloadBytes);
    const chunk = new Chunk(place, bytes.subarray(payloadBytes), this.#counters);
    if (whole && !chunk.lost) {
      const { into } = chunk.extent(place.record, chunk.next);
      into.set(bytes.subarray(0, payloadBytes));
      chunk.check(place.record, chunk.next, this.#counters);
    }
    this.#cache.put(ref.run.run, ref.index, chunk);
    return chunk;
  }

  async #payloads(ref: ChunkRef, chunk: Chunk, from: number, to: number): Promise<void> {
    for (let gap = chunk.gap(from, to); gap !== null; gap = chunk.gap(gap.to, to)) {
      const { position, into } = chunk.extent(gap.from, gap.to);
      await this.#read(ref, into, position);
      chunk.check(gap.from, gap.to, this.#counters);
    }
    this.#cache.put(ref.run.run, ref.index, chunk);
  }

  /** Past the end of a file that was cut short stay zeros, which no CRC takes for the record. */
  async #read({ run }: ChunkRef, into: Uint8Array, position: number): Promise<void> {
    try {
      this.#counters.bytesRead += await readFully(run.file, into, position);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      const message = `${into.length} bytes at ${position} of ${run.path} cannot be read: ${reason}`;
      throw new ForebayError("store_failed", message, { cause });
    }
  }

  /** None of these runs is being read. */
  async settledFor(runs: readonly Run[]): Promise<void> {
    const mine = (key: string): boolean => runs.some(({ run }) => key.startsWith(`${run}:`));
    for (;;) {
      const busy = [...this.#busy].filter(([key]) => mine(key)).map(([, loading]) => loading);
      if (busy.length === 0) {
        return;
      }
      await Promise.allSettled(busy);
    }
  }

  #inTurn({ run, index }: ChunkRef, load: () => Promise<Chunk>): Promise<Chunk> {
    const key = `${run.run}:${index}`;
    const before = this.#busy.get(key);
    const loading: Promise<Chunk> = (
      before === undefined ? load() : before.then(load, load)
    ).finally(() => {
      if (this.#busy.get(key) === loading) {
        this.#busy.delete(key);
      }
    });
    this.#busy.set(key, loading);
    return loading;
  }
}

function placeOf({ run, index }: ChunkRef): ChunkPlace {
  invariant(run.index !== null, "a chunk was found in an index");
  return run.index.chunk(index);
}

/** The record after the last one that fits, at least the one after `from`. */
function lastWithin(chunk: Chunk, from: number, to: number, maxBytes: number): number {
  const end = Math.min(to, chunk.next);
  const limit = chunk.position(from) + maxBytes;
  let last = from + 1;
  while (last < end && chunk.position(last + 1) <= limit) {
    last += 1;
  }
  return last;
}
