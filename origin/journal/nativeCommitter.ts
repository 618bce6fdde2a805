import { invariant } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import type { NativeLayer, OpenCommitter } from "../native/mod.ts";
import { areasKept } from "./areas.ts";
import type { Batch } from "./batch.ts";
import type { ChainEnd } from "./batchHeader.ts";
import type { CommitFile } from "./commitFile.ts";
import type { Committer, CommitterEvents } from "./committer.ts";
import type { Counters } from "./counters.ts";

/** Indices of the words shared with the addon (origin/native/committer.h, `struct control`). */
const wordsApart = 16;
const word = {
  published: 0,
  parked: wordsApart,
  durable: 2 * wordsApart,
  waking: 3 * wordsApart,
  failed: 4 * wordsApart,
  quiet: 5 * wordsApart,
  bells: 6 * wordsApart,
  wakes: 7 * wordsApart,
} as const;
const ringSlots = 64;
const fields = 8;

/** What is used of a file here. */
export type SystemFile = Pick<CommitFile, "path" | "descriptor">;

export interface NativeStart {
  readonly layer: NativeLayer;
  readonly backend: "uring" | "threads";
  readonly areaBytes: number;
  readonly chain: ChainEnd;
  readonly term: number;
  readonly counters: Counters;
  /** Of the directory's lock: held until the last write of a killed process has ended. */
  readonly lockDescriptor?: number | undefined;
  /** Writes at once. */
  readonly depth?: number;
}

/**
 * The addon's committer. A batch is handed over by its place in a ring of descriptors and the word `published`; its own
 * thread completes the header, writes, and counts up the word `durable`. The doorbell is a system call, so it rings only
 * when that thread says that it sleeps (`parked`).
 */
export class NativeCommitter implements Committer {
  readonly inFlightMax: number;
  readonly memory: Uint8Array;
  readonly #layer: NativeLayer;
  readonly #open: OpenCommitter;
  readonly #words: Int32Array;
  readonly #descriptors: Float64Array;
  readonly #areaBytes: number;
  readonly #largeAreas = new WeakMap<ArrayBufferLike, number>();
  readonly #counters: Counters;
  readonly #inFlight: Batch[] = [];
  #events: CommitterEvents | undefined;
  #giveBack: ((area: Uint8Array) => void) | undefined;
  #settled: (() => void)[] = [];
  #published = 0;
  #durable = 0;
  #file: SystemFile | undefined;
  #held = false;
  #failureTold = false;
  #closed = false;

  /** @throws the system's error, with its `code`, when the backend is not to be had */
  constructor(start: NativeStart) {
    const { layer, chain, areaBytes, depth = limits.journalBatchesInFlightMax } = start;
    this.inFlightMax = 2 * depth;
    this.#layer = layer;
    this.#counters = start.counters;
    this.#areaBytes = areaBytes;
    const backend = start.backend === "uring" ? 0 : 1;
    const place = [areasKept, areaBytes, start.term, chain.seq, chain.crc] as const;
    const lock = (start.lockDescriptor ?? -1) + 1;
    this.#open = layer.openCommitter(backend, depth, ...place, lock, () => {
      this.#onWake();
    });
    this.#words = new Int32Array(this.#open.control);
    this.#descriptors = new Float64Array(this.#open.descriptors);
    this.memory = new Uint8Array(this.#open.memory);
  }

  serve(events: CommitterEvents, giveBack: (area: Uint8Array) => void): void {
    this.#events = events;
    this.#giveBack = giveBack;
  }

  get inFlight(): number {
    return this.#inFlight.length;
  }

  /** Doorbells rung, and wakes of this thread, since it was opened. */
  get bells(): number {
    return Atomics.load(this.#words, word.bells);
  }

  get wakes(): number {
    return Atomics.load(this.#words, word.wakes);
  }

  allocate(bytes: number): Uint8Array {
    const { index, memory } = this.#layer.committerAllocate(this.#open.handle, bytes);
    this.#largeAreas.set(memory, index);
    return new Uint8Array(memory);
  }

  submit(batch: Batch, file: SystemFile, salt: number): void {
    if (file !== this.#file) {
      this.#layer.committerUse(this.#open.handle, file.descriptor, salt);
      this.#file = file;
    }
    const at = (this.#published % ringSlots) * fields;
    const d = this.#descriptors;
    d[at] = this.#areaIndex(batch.area);
    d[at + 1] = batch.end;
    d[at + 2] = batch.entries;
    d[at + 3] = batch.flags;
    d[at + 4] = batch.place.generation;
    d[at + 5] = batch.place.position;
    d[at + 6] = batch.firstLsn;
    this.#inFlight.push(batch);
    this.#counters.batches += 1;
    this.#counters.syncs += 1;
    this.#counters.bytesWritten += batch.bytes;
    this.#hold(true);
    this.#published = (this.#published + 1) >>> 0;
    Atomics.store(this.#words, word.published, this.#published | 0);
    if (
      Atomics.load(this.#words, word.parked) === 1 &&
      Atomics.exchange(this.#words, word.parked, 0) === 1
    ) {
      this.#layer.committerRing(this.#open.handle);
    }
  }

  look(): void {
    const durable = Atomics.load(this.#words, word.durable) >>> 0;
    if (durable !== this.#durable) {
      this.#advance(durable);
    }
  }

  settled(): Promise<void> {
    if (this.#isSettled()) {
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      this.#settled.push(resolve);
    });
  }

  close(): void {
    if (!this.#closed) {
      this.#closed = true;
      this.#layer.committerClose(this.#open.handle);
    }
  }

  /** The word is made 0 before the others are read: whatever comes later brings another wake. */
  #onWake(): void {
    Atomics.store(this.#words, word.waking, 0);
    this.look();
    this.#lookForFailure();
    if (this.#isSettled()) {
      this.#hold(false);
      for (const resolve of this.#settled.splice(0)) {
        resolve();
      }
    }
  }

  #advance(durable: number): void {
    let lastLsn = 0;
    while (this.#durable !== durable) {
      const batch = this.#inFlight.shift();
      invariant(batch !== undefined, "what is durable was in flight");
      this.#durable = (this.#durable + 1) >>> 0;
      lastLsn = batch.lastLsn;
      this.#giveBack?.(batch.area);
    }
    this.#events?.onAdvance(lastLsn);
  }

  #lookForFailure(): void {
    const number = Atomics.load(this.#words, word.failed);
    if (number === 0 || this.#failureTold) {
      return;
    }
    this.#failureTold = true;
    const code = this.#layer.errorName(number);
    const path = this.#file?.path ?? "the active segment";
    const error = new Error(`${code}: synced write to ${path} (errno ${number})`);
    this.#events?.onFailed(Object.assign(error, { code, errno: -number }));
  }

  #isSettled(): boolean {
    return this.#inFlight.length === 0 || Atomics.load(this.#words, word.quiet) === 1;
  }

  /** The process stays alive while something is in flight, and only then. */
  #hold(held: boolean): void {
    if (held !== this.#held) {
      this.#held = held;
      this.#layer.committerHold(this.#open.handle, held);
    }
  }

  #areaIndex(area: Uint8Array): number {
    if (area.buffer === this.memory.buffer) {
      return area.byteOffset / this.#areaBytes;
    }
    const index = this.#largeAreas.get(area.buffer);
    invariant(index !== undefined, "a batch lies in an area of its committer");
    return index;
  }
}
