import type { Disk } from "../storage/mod.ts";
import { type Catalog, publishCatalog } from "./catalog.ts";
import type { Counters } from "./counters.ts";

/** What a change of the catalog makes of it; the numbering of runs is not theirs. */
export type CatalogChange = (catalog: Catalog) => Omit<Catalog, "nextRun">;

/** The catalog as it lies on the disk. Checkpoints and merges change it, one after the other. */
export class CatalogKeeper {
  readonly #disk: Disk;
  readonly #dir: string;
  readonly #counters: Counters;
  #catalog: Catalog;
  #nextRun: number;
  #before: Promise<unknown> = Promise.resolve();

  constructor(disk: Disk, dir: string, counters: Counters, catalog: Catalog) {
    this.#disk = disk;
    this.#dir = dir;
    this.#counters = counters;
    this.#catalog = catalog;
    this.#nextRun = catalog.nextRun;
  }

  get catalog(): Catalog {
    return this.#catalog;
  }

  /** A number that no run has or had. */
  takeNumber(): number {
    const run = this.#nextRun;
    this.#nextRun += 1;
    return run;
  }

  /**
   * Publishes the changed catalog when those asked for before are published. If it fails the disk has either of the
   * two; what either names must stay until another publication has succeeded.
   */
  update(change: CatalogChange): Promise<void> {
    const publish = async (): Promise<void> => {
      const catalog = { ...change(this.#catalog), nextRun: this.#nextRun };
      this.#counters.bytesWritten += await publishCatalog(this.#disk, this.#dir, catalog);
      this.#catalog = catalog;
    };
    const done = this.#before.then(publish, publish);
    this.#before = done;
    return done;
  }
}
