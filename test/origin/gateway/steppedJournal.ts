import { ForebayError, type ErrorCode } from "../../../shared/errors/mod.ts";
import { lsn, type Lsn } from "../../../shared/ids/mod.ts";
import type { Journal, JournalEvents, JournalStats } from "../../../origin/journal/mod.ts";

/** A journal in memory whose commits a test lets go, holds back or makes fail. */
export class SteppedJournal implements Journal {
  readonly id = "stepped-journal";
  readonly storage = "direct";
  readonly storageReason = "stepped";
  /** Nothing becomes durable until `commit`. */
  held = false;
  /** What the next appends are refused with. */
  refusal: ErrorCode | null = null;
  readonly #events: JournalEvents;
  #reserved = 0;
  #durable = 0;
  #failed: string | null = null;
  #scheduled = false;

  constructor(events: JournalEvents) {
    this.#events = events;
  }

  get reserved(): Lsn {
    return lsn(this.#reserved);
  }

  get durable(): Lsn {
    return lsn(this.#durable);
  }

  append(_parts: readonly Uint8Array[]): Lsn {
    if (this.refusal !== null) {
      throw new ForebayError(this.refusal, "refused by the test");
    }
    if (this.#failed !== null) {
      throw new ForebayError("journal_failed", this.#failed);
    }
    this.#reserved++;
    if (!this.held && !this.#scheduled) {
      this.#scheduled = true;
      setImmediate(() => {
        this.#scheduled = false;
        if (!this.held) {
          this.commit();
        }
      });
    }
    return lsn(this.#reserved);
  }

  commit(): void {
    if (this.#failed === null && this.#durable < this.#reserved) {
      this.#durable = this.#reserved;
      this.#events.onDurable(lsn(this.#durable));
    }
  }

  fail(reason: string): void {
    this.#failed = reason;
    this.#events.onFailed(new Error(reason));
  }

  readonly trimmed = lsn(0);

  trim(): void {}

  read(): never {
    throw new Error("not asked for");
  }

  flush(): Promise<void> {
    this.commit();
    return Promise.resolve();
  }

  close(): Promise<void> {
    return this.flush();
  }

  stats(): JournalStats {
    return {
      entries: this.#reserved,
      batches: this.#durable,
      syncs: 0,
      bytesWritten: 0,
      segments: 1,
      spares: 0,
      bytesHeld: 0,
      budgetBytes: 0,
      failed: this.#failed,
      full: this.refusal === "disk_full" ? "refused by the test" : null,
    };
  }
}
