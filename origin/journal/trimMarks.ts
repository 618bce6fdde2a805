import { invariant } from "../../shared/errors/mod.ts";
import { lsn, type Lsn } from "../../shared/ids/mod.ts";
import type { Journal } from "./types.ts";

/**
 * One journal, several who need its entries (stores, followers of a relay): each raises its own mark when what it made of the
 * entries is durable by its own sync, and the journal is trimmed up to the lowest.
 */
export class TrimMarks {
  readonly #journal: Pick<Journal, "trim">;
  readonly #marks = new Map<string, number>();

  constructor(journal: Pick<Journal, "trim">, names: readonly string[]) {
    this.#journal = journal;
    for (const name of names) {
      this.#marks.set(name, 0);
    }
  }

  /** Up to here nobody needs an entry. */
  get effective(): Lsn {
    return lsn(this.#marks.size === 0 ? 0 : Math.min(...this.#marks.values()));
  }

  /** A lower mark than before changes nothing. */
  raise(name: string, mark: Lsn): void {
    const before = this.#marks.get(name);
    invariant(before !== undefined, `${name} has a mark`);
    this.#marks.set(name, Math.max(before, mark));
    this.#journal.trim(this.effective);
  }
}
