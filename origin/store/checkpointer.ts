import { invariant } from "../../shared/errors/mod.ts";
import type { Lsn } from "../../shared/ids/mod.ts";
import type { Clock, Timer } from "../../shared/ports/mod.ts";
import { endOfTurn } from "../ports/mod.ts";
import type { Disk } from "../storage/mod.ts";
import type { Arena } from "./arena.ts";
import type { Arenas } from "./arenas.ts";
import type { CatalogKeeper } from "./catalogKeeper.ts";
import { checkpointDue, type CheckpointLimits, retryAfter } from "./checkpointDue.ts";
import type { Counters } from "./counters.ts";
import type { Run } from "./run.ts";
import { makeRun, recordsOf } from "./runMaker.ts";
import type { RunSet } from "./runSet.ts";
import { encodeState } from "./stateSection.ts";
import type { CheckpointOwner, FrozenState } from "./types.ts";

export interface CheckpointerOptions {
  readonly disk: Disk;
  readonly dir: string;
  readonly clock: Clock;
  readonly counters: Counters;
  readonly arenas: Arenas;
  readonly runs: RunSet;
  readonly limits: CheckpointLimits;
  readonly keeper: CatalogKeeper;
  /** A checkpoint was made: there is a run more. */
  readonly onCheckpoint: () => void;
  /** Told of each failure, and with null of the first success after one. */
  readonly onFailed: (error: unknown) => void;
}

/** A closed arena on its way into the catalog. Each step that is done is not done again. */
interface Closing {
  readonly lsn: Lsn;
  readonly arena: Arena;
  readonly frozen: FrozenState;
  state: Uint8Array | null;
  run: Run | null;
}

/**
 * Makes checkpoints, one at a time: closes the arena, writes its run, publishes the catalog, trims the journal
 * (FORMAT.md). Steps that fail are tried again; nothing but time is lost by them.
 *
 * Invariants: catalog.checkpointLsn ≤ journal.durable; trimmed ≤ catalog.checkpointLsn; a closing is pending exactly
 * while the arenas are.
 */
export class Checkpointer {
  readonly #options: CheckpointerOptions;
  readonly #owner: CheckpointOwner;
  #closing: Closing | null = null;
  #running = false;
  #stopped = false;
  #failures = 0;
  #openedAt: number | null = null;
  #closedLsn: number;
  /** What the journal had written at the last closing. */
  #journalBytes = 0;
  #timer: Timer | null = null;
  #timerAt = Number.POSITIVE_INFINITY;
  #idle: (() => void) | null = null;

  constructor(options: CheckpointerOptions, owner: CheckpointOwner) {
    this.#options = options;
    this.#owner = owner;
    this.#closedLsn = options.keeper.catalog.checkpointLsn;
  }

  get checkpointLsn(): number {
    return this.#options.keeper.catalog.checkpointLsn;
  }

  /** After each durable advance of the journal. */
  onDurable(): void {
    const closing = this.#closing;
    if (closing === null) {
      this.#look();
    } else if (closing.run === null || this.#owner.journal.durable >= closing.lsn) {
      this.#resume();
    }
  }

  /** Closes the arena and begins its checkpoint, unless one is being made. */
  close(): void {
    const { arenas } = this.#options;
    const { journal } = this.#owner;
    if (this.#closing !== null || this.#stopped || journal.reserved === this.#closedLsn) {
      return;
    }
    const lsn = journal.reserved;
    const frozen = this.#owner.freeze();
    this.#closing = { lsn, arena: arenas.close(), frozen, state: null, run: null };
    this.#closedLsn = lsn;
    this.#openedAt = null;
    this.#journalBytes = journal.stats().bytesWritten;
    this.#disarm();
    this.#resume();
  }

  /** Gives up what is being made; resolves when nothing is written any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#disarm();
    if (this.#running) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
    }
    await this.#closing?.run?.file.close();
  }

  /** Closes the arena if that is due, else arms the timer for when it will be. */
  #look(): void {
    const { clock, limits } = this.#options;
    const { journal } = this.#owner;
    if (this.#stopped || this.#closing !== null || journal.reserved === this.#closedLsn) {
      return;
    }
    const now = clock.now();
    this.#openedAt ??= now;
    const journalBytes = journal.stats().bytesWritten - this.#journalBytes;
    const view = { now, running: false, openedAt: this.#openedAt, journalBytes };
    const due = checkpointDue(view, limits);
    if (due !== null && due <= now) {
      this.close();
    } else if (due !== null) {
      this.#arm(due, () => this.#look());
    }
  }

  #resume(): void {
    if (this.#running || this.#stopped || this.#timer !== null) {
      return;
    }
    this.#running = true;
    void this.#run().finally(() => {
      this.#running = false;
      this.#idle?.();
      // What came while the guard was set was told to nobody.
      this.onDurable();
    });
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    try {
      while (this.#closing !== null && !this.#stopped) {
        if (!(await this.#advance(this.#closing))) {
          return;
        }
      }
    } catch (error) {
      this.#failed(error);
    }
  }

  /** The next steps of a closing; false when it has to wait for the journal. */
  async #advance(closing: Closing): Promise<boolean> {
    closing.state ??= await encodeState(closing.frozen, this.#turn);
    closing.run ??= await this.#makeRun(closing, closing.state);
    if (this.#owner.journal.durable < closing.lsn) {
      return false;
    }
    await this.#publish(closing, closing.run);
    return true;
  }

  #makeRun({ lsn, arena }: Closing, state: Uint8Array): Promise<Run> {
    const { keeper } = this.#options;
    const { storeId, checkpointLsn } = keeper.catalog;
    const run = keeper.takeNumber();
    const identity = { lane: 0, run, storeId, firstLsn: checkpointLsn + 1, lastLsn: lsn };
    const fill = recordsOf(arena);
    return makeRun({ ...this.#options, turn: this.#turn }, { identity, fill, state });
  }

  async #publish(closing: Closing, made: Run): Promise<void> {
    const { keeper, counters, arenas, runs, onFailed, onCheckpoint } = this.#options;
    const { journal } = this.#owner;
    const { run, lane, fileBytes, payloadBytes } = made;
    invariant(closing.lsn <= journal.durable, "the catalog names what is durable");
    await keeper.update((catalog) => ({
      ...catalog,
      journalId: journal.id,
      checkpointLsn: closing.lsn,
      runs: [...catalog.runs, { run, lane, fileBytes, payloadBytes }],
    }));
    this.#closing = null;
    runs.add(made);
    arenas.settle();
    counters.checkpoints += 1;
    if (this.#failures > 0) {
      this.#failures = 0;
      onFailed(null);
    }
    journal.trim(closing.lsn);
    onCheckpoint();
  }

  #failed(error: unknown): void {
    if (this.#stopped) {
      return;
    }
    const { clock, counters, onFailed } = this.#options;
    this.#failures += 1;
    counters.checkpointFailures += 1;
    onFailed(error);
    this.#arm(clock.now() + retryAfter(this.#failures), () => this.#resume());
  }

  readonly #turn = async (): Promise<void> => {
    await new Promise<void>((resolve) => {
      endOfTurn(resolve);
    });
    if (this.#stopped) {
      throw new Error("the store is being closed");
    }
  };

  #arm(at: number, fire: () => void): void {
    if (this.#timer !== null && this.#timerAt <= at) {
      return;
    }
    this.#disarm();
    const { clock } = this.#options;
    this.#timerAt = at;
    this.#timer = clock.after(Math.max(0, at - clock.now()), () => {
      this.#disarm();
      fire();
    });
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#timerAt = Number.POSITIVE_INFINITY;
  }
}
