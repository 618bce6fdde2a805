/** Something that may be due. */
export interface Job {
  /** Whether there is something to do now. */
  due(): boolean;
  /** Does it; handles its own failures. */
  run(): Promise<void>;
}

/**
 * Does one thing at a time to a ring's files, in the order of the jobs; sleeps when none is due. It has no timer of its own.
 * `SegmentManager.wake` is called where something becomes due, and nowhere else:
 *
 * - `SegmentSupply.prepare`: a segment fills up, or the next one is needed
 * - `Ring.trim`: the owner raised the mark
 * - `Ring.advanced`: the first batch of a segment is durable, so the one before it may go
 * - `Ring.unpin`: a reader let a segment go
 * - `Ring.events`: the journal is open, and what a crash in a trim left can be recycled
 * - `Trimmer.attempt`: the deadline of a retry
 */
export class SegmentManager {
  /** Times it went from sleep to work. */
  wakes = 0;
  readonly #jobs: readonly Job[];
  #working: Promise<void> | undefined;
  #awake = false;
  #stopped = false;

  constructor(jobs: readonly Job[]) {
    this.#jobs = jobs;
  }

  wake(): void {
    if (!this.#awake && this.#next() !== undefined) {
      this.#awake = true;
      this.wakes += 1;
      this.#working = this.#work();
    }
  }

  /** Resolves when nothing is being done. */
  async settled(): Promise<void> {
    while (this.#awake) {
      await this.#working;
    }
  }

  /** Begins nothing more; resolves when what is under way has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.settled();
  }

  async #work(): Promise<void> {
    try {
      for (let job = this.#next(); job !== undefined; job = this.#next()) {
        await job.run();
      }
    } finally {
      this.#awake = false;
    }
  }

  #next(): Job | undefined {
    return this.#stopped ? undefined : this.#jobs.find((job) => job.due());
  }
}
