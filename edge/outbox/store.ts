import { invariant } from "../../shared/errors/mod.ts";
import type { Random } from "../../shared/ports/mod.ts";
import { noDrain, noTail, type Drain, type Ending, type Life, type Tail } from "./rows.ts";
import { Tables } from "./tables.ts";

/** What an outbox is, apart from its frames: changed as a whole, by one transaction at a time. */
export interface Book {
  readonly tail: Tail;
  readonly drain: Drain;
  /** Epochs, newest last; at least one once the outbox was used. */
  readonly lives: readonly Life[];
}

/** Ended epochs that positions are still known of. */
const livesMax = 16;

/**
 * The outbox's storage and the newest committed state of it in memory. Nothing is written before the first change, so
 * an outbox that is only asked stays empty.
 */
export class Store {
  readonly tables: Tables;
  readonly #storage: DurableObjectStorage;
  readonly #random: Random;
  #made: boolean;
  #book: Book;

  constructor(storage: DurableObjectStorage, random: Random) {
    this.#storage = storage;
    this.#random = random;
    this.tables = new Tables(storage.sql);
    this.#made = this.tables.exist();
    this.#book = {
      tail: this.#read("tail") ?? noTail,
      drain: this.#read("drain") ?? noDrain,
      lives: this.#read("lives") ?? [],
    };
  }

  get book(): Book {
    return this.#book;
  }

  /**
   * One transaction: `decide` writes rows and returns the new book with its result. Each part of the book that is not
   * the same object as before costs one row. When it throws, nothing has happened, in memory neither.
   */
  change<T>(decide: (book: Book) => { readonly book: Book; readonly result: T }): T {
    const before = this.#book;
    const { book, result } = this.#storage.transactionSync(() => {
      if (!this.#made) {
        this.tables.create();
      }
      const next = decide(this.#begun(before));
      for (const key of ["tail", "drain", "lives"] as const) {
        if (next.book[key] !== before[key]) {
          this.tables.putMeta(key, next.book[key]);
        }
      }
      check(next.book);
      return next;
    });
    this.#made = true;
    this.#book = book;
    return result;
  }

  /** Ends the present epoch and starts one with the rows above `through`. The sender's memory starts anew elsewhere. */
  renewed(
    lives: readonly Life[],
    ending: Ending,
    through: number,
    newest: number,
  ): readonly Life[] {
    const ended: Life[] = lives
      .slice(-livesMax + 1)
      .map((life) =>
        life.ending === null
          ? { ...life, ending, lostThrough: ending === "origin_history_lost" ? through : 0 }
          : life,
      );
    const epoch = this.#newEpoch();
    return [...ended, { epoch, shift: through, encodedFrom: newest, ending: null, lostThrough: 0 }];
  }

  #begun(book: Book): Book {
    if (book.lives.length > 0) {
      return book;
    }
    const first: Life = {
      epoch: this.#newEpoch(),
      shift: 0,
      encodedFrom: 0,
      ending: null,
      lostThrough: 0,
    };
    return { ...book, lives: [first] };
  }

  /** Ten random bytes in base 36, at most 16 characters. */
  #newEpoch(): string {
    const text = [...this.#random.bytes(10)]
      .map((byte) => byte.toString(16).padStart(2, "0"))
      .join("");
    return BigInt(`0x${text}`).toString(36);
  }

  #read<T>(key: string): T | undefined {
    return this.#made ? (this.tables.meta(key) as T | undefined) : undefined;
  }
}

export function lifeOf(book: Book): Life {
  const life = book.lives.at(-1);
  invariant(life !== undefined, "a used outbox has an epoch");
  return life;
}

/** The newest row known to be durable at the origin. */
export function ackedRow(book: Book): number {
  return book.drain.memory.acked + (book.lives.at(-1)?.shift ?? 0);
}

/** Rows are dense, so what is kept follows from the marks: no table is counted. */
export function framesKept(book: Book): number {
  return book.tail.row - ackedRow(book);
}

export function bytesKept({ tail, drain }: Book): number {
  return tail.bytesIn - drain.bytesOut;
}

function check(book: Book): void {
  const { tail, drain } = book;
  invariant(ackedRow(book) <= tail.row, "acked ≤ newest row");
  invariant(drain.bytesOut <= tail.bytesIn, "bytes out ≤ bytes in");
  invariant(drain.acknowledged + drain.dead <= tail.accepted, "acknowledged + dead ≤ accepted");
}
