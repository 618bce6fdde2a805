import { ForebayError, invariant } from "../../shared/errors/mod.ts";
import { lsn, type Lsn } from "../../shared/ids/mod.ts";
import { limits } from "../../shared/limits.ts";
import type { Clock, Timer } from "../../shared/ports/mod.ts";
import { endOfTurn } from "../ports/mod.ts";
import { blockBytes, type DirectoryLock } from "../storage/mod.ts";
import { Areas } from "./areas.ts";
import { Batch } from "./batch.ts";
import type { ChainEnd } from "./batchHeader.ts";
import type { Committer } from "./committer.ts";
import type { Counters } from "./counters.ts";
import { batchFlag } from "./layout.ts";
import { FlushWaiters } from "./flushWaiters.ts";
import type { Ring } from "./ring.ts";
import { entryBytesMaxOf, Stage } from "./stage.ts";
import type { EntryReader, Journal, JournalEvents, JournalStats } from "./types.ts";

/** While a batch is in flight another one starts only when this much waits (FORMAT.md, Decisions). */
const overlapBytes = 16 * 1024;

export interface ShardParts {
  readonly id: string;
  readonly storage: string;
  readonly storageReason: string;
  readonly clock: Clock;
  readonly counters: Counters;
  readonly committer: Committer;
  /** Size of the areas its memory is cut into. */
  readonly areaBytes: number;
  readonly segmentBytes: number;
  readonly budgetBytes: number;
  readonly chain: ChainEnd;
  /** Where the next batch goes in the active segment. */
  readonly position: number;
  readonly lock: DirectoryLock;
  readonly events: JournalEvents;
  /** Its active segment is open. */
  readonly ring: Ring;
}

/**
 * One shard: staging, commit, rotation. Invariant: durable ≤ reserved, and every entry between is in a batch
 * that is staged or in flight.
 */
export class ShardJournal implements Journal {
  readonly id: string;
  readonly storage: string;
  readonly storageReason: string;
  readonly #parts: ShardParts;
  readonly #ring: Ring;
  readonly #stage: Stage;
  readonly #committer: Committer;
  readonly #areas: Areas;
  readonly #entryBytesMax: number;
  readonly #flushWaiters = new FlushWaiters();
  #reserved: Lsn;
  #durable: Lsn;
  /** Where the last batch submitted to the active segment ends. */
  #activeEnd: number;
  #turnEndDue = false;
  #rotation: Promise<void> | undefined;
  #spaceTimer: Timer | undefined;
  /** Refuses every append: closing, closed or failed. */
  #refusal: (() => ForebayError) | undefined;
  #failed: ForebayError | undefined;
  #closing: Promise<void> | undefined;

  constructor(parts: ShardParts) {
    const { ring } = parts;
    this.id = parts.id;
    this.storage = parts.storage;
    this.storageReason = parts.storageReason;
    this.#parts = parts;
    this.#ring = ring;
    ring.events = {
      onPrepared: () => this.#pump(false),
      onFailed: (error) => this.#fail(error),
      onFull: (reason) => parts.events.onFull?.(reason),
    };
    this.#reserved = lsn(parts.chain.lsn);
    this.#durable = this.#reserved;
    this.#activeEnd = parts.position;
    this.#entryBytesMax = entryBytesMaxOf(parts.segmentBytes);
    this.#committer = parts.committer;
    this.#areas = new Areas(parts.committer, parts.areaBytes);
    this.#committer.serve(
      {
        onAdvance: (lastLsn) => this.#advanced(lsn(lastLsn)),
        onFailed: (error) => this.#fail(error),
      },
      (area) => this.#areas.giveBack(area),
    );
    this.#stage = new Stage(
      {
        areas: this.#areas,
        segmentBytes: parts.segmentBytes,
        admit: (generation) => ring.supply.admit(generation),
        onFilling: () => ring.supply.prepareAhead(),
      },
      { generation: ring.active.header.generation, position: parts.position },
    );
  }

  get reserved(): Lsn {
    return this.#reserved;
  }

  get durable(): Lsn {
    return this.#durable;
  }

  get trimmed(): Lsn {
    return lsn(this.#ring.trimmed);
  }

  trim(upTo: Lsn): void {
    invariant(upTo <= this.#durable, "only what is durable is trimmed");
    if (this.#refusal === undefined) {
      this.#ring.trim(upTo);
    }
  }

  read(from: Lsn): EntryReader {
    return this.#ring.reader(from, () => this.#durable);
  }

  append(parts: readonly Uint8Array[]): Lsn {
    if (this.#refusal !== undefined) {
      throw this.#refusal();
    }
    let length = 0;
    for (const part of parts) {
      length += part.length;
    }
    let batch = this.#stage.open;
    if (batch === undefined || !batch.takes(length)) {
      batch = this.#makeRoom(length);
    }
    batch.add(parts, length);
    this.#reserved = lsn(this.#reserved + 1);
    this.#parts.counters.entries += 1;
    if (!this.#turnEndDue) {
      this.#pumpAtTurnEnd();
    }
    return this.#reserved;
  }

  flush(): Promise<void> {
    if (this.#failed !== undefined) {
      return Promise.reject(this.#failed);
    }
    const upTo = this.#reserved;
    if (this.#durable >= upTo) {
      return Promise.resolve();
    }
    return this.#flushWaiters.wait(upTo);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  stats(): JournalStats {
    const { counters, budgetBytes } = this.#parts;
    const failed = this.#failed?.message ?? null;
    return { ...counters, ...this.#ring.gauges(), budgetBytes, failed };
  }

  /** The slow half of `append`: a batch with room, or a refusal with nothing changed. */
  #makeRoom(length: number): Batch {
    if (length > this.#entryBytesMax) {
      throw new ForebayError(
        "record_too_large",
        `a journal entry of ${length} bytes is larger than the limit of ${this.#entryBytesMax}`,
      );
    }
    const { journalBatchesInFlightMax, journalBatchBytesTarget, journalBatchBytesMax } = limits;
    const ahead = this.#committer.inFlight + this.#stage.closed.length;
    const bytesTarget =
      ahead < journalBatchesInFlightMax ? journalBatchBytesTarget : journalBatchBytesMax;
    const batch = this.#stage.makeRoom(length, this.#reserved + 1, bytesTarget);
    this.#pump(false);
    return batch;
  }

  /** Requests of one event-loop turn share a batch: it is closed when the turn's callbacks are done. */
  #pumpAtTurnEnd(): void {
    this.#turnEndDue = true;
    endOfTurn(() => {
      this.#turnEndDue = false;
      this.#committer.look();
      this.#pump(true);
    });
  }

  /** Submits what may go now. Only at the end of a turn the open batch is closed for it. */
  #pump(turnEnded: boolean): void {
    while (
      this.#failed === undefined &&
      this.#rotation === undefined &&
      this.#committer.inFlight < this.#committer.inFlightMax
    ) {
      const batch = this.#nextBatch(turnEnded);
      if (batch === undefined) {
        return;
      }
      const { header, file } = this.#ring.active;
      if (batch.place.generation !== header.generation) {
        if (this.#committer.inFlight === 0) {
          this.#leaveSegment();
        }
        return;
      }
      this.#stage.shift();
      this.#activeEnd = batch.place.position + batch.bytes;
      this.#committer.submit(batch, file, header.salt);
    }
  }

  #nextBatch(turnEnded: boolean): Batch | undefined {
    const { closed, open } = this.#stage;
    if (closed.length > 0 || open === undefined || !turnEnded) {
      return closed[0];
    }
    const { inFlight } = this.#committer;
    const waits = inFlight > 0 && open.end < overlapBytes;
    if (waits || inFlight >= limits.journalBatchesInFlightMax) {
      return undefined;
    }
    this.#stage.close();
    return closed[0];
  }

  #advanced(durable: Lsn): void {
    if (this.#failed !== undefined) {
      // Whoever waits has been told that the outcome is unknown.
      return;
    }
    if (durable > this.#durable) {
      this.#durable = durable;
      this.#flushWaiters.settle(durable);
      this.#ring.advanced(durable);
      this.#parts.events.onDurable(durable);
    }
    this.#pump(false);
    if (this.#stage.open !== undefined && !this.#turnEndDue) {
      this.#pumpAtTurnEnd();
    }
  }

  /** Every batch of the active segment is durable and the next one belongs to its successor. */
  #leaveSegment(): void {
    if (this.#ring.supply.spares > 0) {
      this.#rotation = this.#rotate().then(
        () => {
          this.#rotation = undefined;
          this.#pump(true);
        },
        (error: unknown) => {
          this.#rotation = undefined;
          this.#fail(error);
        },
      );
      return;
    }
    const { shortage, retryMs } = this.#ring.supply;
    if (shortage === null) {
      this.#ring.supply.prepare();
      return;
    }
    // Entries were taken for a segment that there is no space for: they wait, and no more are taken.
    this.#stage.refuseMore();
    if (this.#refusal !== undefined) {
      this.#fail(new ForebayError("disk_full", shortage));
      return;
    }
    this.#spaceTimer ??= this.#parts.clock.after(retryMs, () => {
      this.#spaceTimer = undefined;
      this.#ring.supply.prepare();
    });
  }

  /** SEAL durable, then the manifest, then the first batch of the new segment. */
  async #rotate(): Promise<void> {
    const { header, file } = this.#ring.active;
    const place = { generation: header.generation, position: this.#activeEnd };
    const area = this.#areas.take(blockBytes);
    const seal = new Batch(area, place, {
      firstLsn: this.#durable + 1,
      limit: 0,
      flags: batchFlag.seal,
    });
    this.#committer.submit(seal, file, header.salt);
    await this.#committer.settled();
    if (this.#failed === undefined) {
      await this.#ring.activate(this.#durable);
      this.#activeEnd = blockBytes;
    }
  }

  #fail(cause: unknown): void {
    if (this.#failed !== undefined) {
      return;
    }
    const reason = cause instanceof Error ? cause.message : String(cause);
    const failed = new ForebayError("journal_failed", `the journal failed closed: ${reason}`, {
      cause,
    });
    this.#failed = failed;
    this.#refusal = () => new ForebayError("journal_failed", failed.message, { cause });
    this.#spaceTimer?.cancel();
    this.#ring.fail();
    this.#flushWaiters.fail(failed);
    this.#parts.events.onFailed(failed);
  }

  async #close(): Promise<void> {
    this.#refusal ??= () =>
      new ForebayError("shutting_down", "the journal is closed or being closed");
    try {
      this.#pump(true);
      await this.flush().catch(() => undefined);
      await this.#rotation;
      await this.#ring.settled();
      this.#attest();
      await this.#committer.settled();
      await this.#ring.close();
    } finally {
      this.#committer.close();
      await this.#parts.lock.release();
    }
  }

  /** A last batch without entries says that all before it was durable. */
  #attest(): void {
    const { counters } = this.#parts;
    if (this.#failed !== undefined || counters.entries === 0) {
      return;
    }
    const batch = this.#stage.control(this.#areas.take(blockBytes), this.#durable + 1);
    if (batch !== undefined) {
      const { header, file } = this.#ring.active;
      this.#committer.submit(batch, file, header.salt);
    }
  }
}
