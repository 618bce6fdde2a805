import { ForebayError } from "../../shared/errors/mod.ts";
import type { Chunk } from "./chunk.ts";
import { ChunkCache } from "./chunkCache.ts";
import { ChunkLoader } from "./chunkLoader.ts";
import type { Counters } from "./counters.ts";
import type { ChunkRef, Run } from "./run.ts";
import { Cold, type RecordRange } from "./types.ts";

/**
 * The live runs, oldest first, and what is in memory of them. Each holds a later range of a stream's records than the
 * runs before it.
 */
export class RunSet {
  readonly #counters: Counters;
  readonly #cache: ChunkCache;
  readonly #loader: ChunkLoader;
  #runs: readonly Run[] = [];

  constructor(counters: Counters, cacheBytes: number) {
    this.#counters = counters;
    this.#cache = new ChunkCache(cacheBytes);
    this.#loader = new ChunkLoader(this.#cache, counters);
  }

  get runs(): readonly Run[] {
    return this.#runs;
  }

  get fileBytes(): number {
    return this.#runs.reduce((sum, { fileBytes }) => sum + fileBytes, 0);
  }

  get cachedBytes(): number {
    return this.#cache.bytesHeld;
  }

  add(run: Run): void {
    this.#runs = [...this.#runs, run];
  }

  /** `merged` holds what `inputs`, neighbours, held. Resolves when nobody reads these any more; their files are closed. */
  async replace(inputs: readonly Run[], merged: Run): Promise<void> {
    const first = inputs[0];
    this.#runs = this.#runs.flatMap((run) =>
      run === first ? [merged] : inputs.includes(run) ? [] : [run],
    );
    await this.#loader.settledFor(inputs);
    await Promise.all(inputs.map(({ file }) => file.close()));
  }

  /** @throws Cold | ForebayError `record_damaged` */
  position(stream: number, record: number): number {
    if (record === 0) {
      return 0;
    }
    const ref = this.#holder(stream, record) ?? this.#holder(stream, record - 1);
    if (ref === undefined) {
      throw lost(stream, record);
    }
    const place = ref.run.index?.chunk(ref.index);
    if (place !== undefined && record === place.record) {
      return place.byte;
    }
    if (place !== undefined && record === place.record + place.records) {
      return place.byte + place.payloadBytes;
    }
    const chunk = this.#cache.get(ref.run.run, ref.index);
    if (chunk === undefined) {
      throw new Cold(() => this.#loader.table(ref).then(() => undefined));
    }
    if (chunk.lost) {
      throw damaged(ref, record, chunk);
    }
    return chunk.position(record);
  }

  /** As `RecordStore.read`, for `to` at most what runs hold. */
  read(stream: number, { from, to, maxBytes }: RecordRange): Uint8Array[] {
    const records: Uint8Array[] = [];
    let left = maxBytes;
    let next = from;
    while (next < to) {
      const chunk = this.#resident(stream, next, next === from ? to : null, maxBytes);
      if (chunk === undefined) {
        break;
      }
      this.#counters.chunksVisited += 1;
      const end = Math.min(to, chunk.next);
      const before = next;
      for (; next < end; next++) {
        const record = chunk.get(next);
        if (record === undefined || (record.length > left && next > from)) {
          break;
        }
        records.push(record);
        left -= record.length;
      }
      if (next < end || next === before) {
        break;
      }
    }
    this.#counters.bytesReturned += maxBytes - left;
    return records;
  }

  /** Closes the files. Nothing is read after this. */
  async close(): Promise<void> {
    const runs = this.#runs;
    this.#runs = [];
    await this.#loader.settled();
    await Promise.all(runs.map(({ file }) => file.close()));
  }

  /**
   * The chunk that holds `record`, with the record in memory.
   *
   * @param to of the first record of a read, which must be had: what to load up to. Null for one that may be left out.
   */
  #resident(
    stream: number,
    record: number,
    to: number | null,
    maxBytes: number,
  ): Chunk | undefined {
    const ref = this.#holder(stream, record);
    const chunk = ref === undefined ? undefined : this.#cache.get(ref.run.run, ref.index);
    if (chunk?.get(record) !== undefined || to === null) {
      return chunk;
    }
    if (ref === undefined) {
      throw lost(stream, record);
    }
    if (chunk?.isDamaged(record) === true) {
      throw damaged(ref, record, chunk);
    }
    throw new Cold(() => this.#load(stream, { from: record, to, maxBytes }));
  }

  /** Brings records from `from` on into memory, as many as a read of the range wants. */
  async #load(stream: number, { from, to, maxBytes }: RecordRange): Promise<void> {
    const first = this.#holder(stream, from);
    const place = first?.run.index?.chunk(first.index);
    if (first === undefined || place === undefined) {
      return;
    }
    this.#cache.trim();
    const whole = from === place.record && to >= place.record + place.records;
    const chunk = await this.#loader.records(first, { from, to, maxBytes }, whole);
    if (chunk.lost) {
      return;
    }
    const limit = chunk.position(from) + maxBytes;
    const more: Promise<unknown>[] = [];
    for (let next = chunk.next; next < to;) {
      const ref = this.#holder(stream, next);
      const behind = ref?.run.index?.chunk(ref.index);
      if (ref === undefined || behind === undefined || behind.byte >= limit) {
        break;
      }
      const after = behind.record + behind.records;
      const all = to >= after && behind.byte + behind.payloadBytes <= limit;
      more.push(this.#loader.records(ref, { from: next, to, maxBytes: limit - behind.byte }, all));
      next = after;
    }
    await Promise.all(more);
  }

  /** The chunk in which the record lies. */
  #holder(stream: number, record: number): ChunkRef | undefined {
    for (let i = this.#runs.length - 1; i >= 0; i--) {
      const run = this.#runs[i];
      const index = run?.index?.find(stream, record) ?? -1;
      if (run === undefined || index < 0 || run.index === null) {
        continue;
      }
      const place = run.index.chunk(index);
      if (record < place.record + place.records) {
        return { run, index };
      }
    }
    return undefined;
  }
}

function damaged({ run, index }: ChunkRef, record: number, chunk: Chunk): ForebayError {
  const what = chunk.lost ? "the table of its chunk" : "its payload";
  const next = chunk.lost ? chunk.next : record + 1;
  const message = `record ${record} is lost: ${what} in ${run.path}, chunk ${index}, does not match its CRC; record ${next} follows`;
  return new ForebayError("record_damaged", message);
}

function lost(stream: number, record: number): ForebayError {
  const message = `record ${record} of stream ${stream} is lost: no run that can be read holds it`;
  return new ForebayError("record_damaged", message);
}
