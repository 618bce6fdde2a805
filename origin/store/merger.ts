import type { Clock, Timer } from "../../shared/ports/mod.ts";
import { endOfTurn } from "../ports/mod.ts";
import type { Disk } from "../storage/mod.ts";
import { removeFile } from "./catalog.ts";
import type { CatalogKeeper } from "./catalogKeeper.ts";
import { retryAfter } from "./checkpointDue.ts";
import type { Counters } from "./counters.ts";
import { mergedRecords, mergedState } from "./merge.ts";
import { mergeDue } from "./mergeDue.ts";
import type { Run } from "./run.ts";
import { makeRun } from "./runMaker.ts";
import type { RunSet } from "./runSet.ts";

export interface MergerOptions {
  readonly disk: Disk;
  readonly dir: string;
  readonly clock: Clock;
  readonly counters: Counters;
  readonly runs: RunSet;
  readonly keeper: CatalogKeeper;
  readonly onFailed: (error: unknown) => void;
}

/** A merge under way; what is made of it is not made again. */
interface Merging {
  readonly inputs: readonly Run[];
  /** No older run is left. */
  readonly last: boolean;
  made: Run | null;
}

/**
 * Merges runs in the background, one merge at a time, beside checkpoints. A merge that fails is tried again; until its
 * catalog is published its inputs are what lives.
 */
export class Merger {
  readonly #options: MergerOptions;
  #merging: Merging | null = null;
  #running = false;
  #stopped = false;
  #failures = 0;
  #timer: Timer | null = null;
  #idle: (() => void) | null = null;

  constructor(options: MergerOptions) {
    this.#options = options;
  }

  /** There may be something to merge. */
  look(): void {
    if (this.#running || this.#stopped || this.#timer !== null) {
      return;
    }
    this.#merging ??= this.#plan();
    if (this.#merging === null) {
      return;
    }
    this.#running = true;
    void this.#run().finally(() => {
      this.#running = false;
      this.#idle?.();
      this.look();
    });
  }

  /** Gives up what is being made; resolves when nothing is written any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    if (this.#running) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
    }
    await this.#merging?.made?.file.close();
  }

  #plan(): Merging | null {
    const { runs } = this.#options.runs;
    // A run whose index is lost stays as it is: what it held would be forgotten.
    const sizes = runs.map(({ fileBytes, index }) => (index === null ? Infinity : fileBytes));
    const plan = mergeDue(sizes);
    return plan && { inputs: runs.slice(plan.from, plan.to), last: plan.from === 0, made: null };
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { clock, counters, onFailed } = this.#options;
    try {
      if (this.#merging !== null) {
        await this.#advance(this.#merging);
      }
      this.#failures = 0;
    } catch (error) {
      if (!this.#stopped) {
        this.#failures += 1;
        counters.mergeFailures += 1;
        onFailed(error);
        this.#timer = clock.after(retryAfter(this.#failures), () => {
          this.#timer = null;
          this.look();
        });
      }
    }
  }

  async #advance(merging: Merging): Promise<void> {
    const { disk, counters, runs, keeper } = this.#options;
    const made = (merging.made ??= await this.#make(merging));
    const { run, lane, fileBytes, payloadBytes } = made;
    const replaced = new Set(merging.inputs.map((input) => input.run));
    const [first] = replaced;
    await keeper.update((catalog) => ({
      ...catalog,
      runs: catalog.runs.flatMap((named) =>
        named.run === first
          ? [{ run, lane, fileBytes, payloadBytes }]
          : replaced.has(named.run)
            ? []
            : [named],
      ),
    }));
    this.#merging = null;
    counters.merges += 1;
    await runs.replace(merging.inputs, made);
    for (const { path } of merging.inputs) {
      // What is left is unlinked by the next start.
      await removeFile(disk, path).catch(() => undefined);
    }
  }

  async #make({ inputs, last }: Merging): Promise<Run> {
    const { counters, keeper } = this.#options;
    const { state, dead } = await mergedState(inputs, last, counters, this.#turn);
    const identity = {
      lane: 0,
      run: keeper.takeNumber(),
      storeId: keeper.catalog.storeId,
      firstLsn: inputs[0]?.header.firstLsn ?? 0,
      lastLsn: inputs.at(-1)?.header.lastLsn ?? 0,
    };
    const fill = mergedRecords(inputs, dead, counters);
    return makeRun({ ...this.#options, turn: this.#turn }, { identity, state, fill });
  }

  readonly #turn = async (): Promise<void> => {
    await new Promise<void>((resolve) => {
      endOfTurn(resolve);
    });
    if (this.#stopped) {
      throw new Error("the store is being closed");
    }
  };
}
