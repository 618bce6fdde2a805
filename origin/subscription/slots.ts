/** One delivery to make. */
export interface Errand {
  /** Errands with one key never run at the same time. */
  readonly key: number;
  /** It failed before: such may take half of the slots only, so that the others are not held up by slow receivers. */
  readonly retry: boolean;
  /** Never rejects. */
  run(): Promise<void>;
}

/** Runs errands, so many at once, in the order they came as far as their keys and the share of retries allow. */
export class Slots {
  readonly #max: number;
  #waiting: Errand[] = [];
  readonly #running: Set<number> = new Set();
  #retries = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get running(): number {
    return this.#running.size;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  add(errand: Errand): void {
    this.#waiting.push(errand);
    this.#start();
  }

  close(): void {
    this.#waiting = [];
  }

  #start(): void {
    const left: Errand[] = [];
    for (const errand of this.#waiting) {
      if (this.#mayRun(errand)) {
        void this.#run(errand);
      } else {
        left.push(errand);
      }
    }
    this.#waiting = left;
  }

  #mayRun({ key, retry }: Errand): boolean {
    const free = this.#running.size < this.#max && !this.#running.has(key);
    return free && !(retry && this.#retries >= this.#max / 2);
  }

  async #run(errand: Errand): Promise<void> {
    this.#running.add(errand.key);
    this.#retries += errand.retry ? 1 : 0;
    await errand.run();
    this.#running.delete(errand.key);
    this.#retries -= errand.retry ? 1 : 0;
    this.#start();
  }
}
