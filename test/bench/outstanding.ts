import fs from "node:fs";
import type { Journal } from "../../origin/journal/mod.ts";

/** A log under test: `append` takes a record, `onDurable` tells how many are durable by now. */
export interface Log {
  append(record: Uint8Array): void;
  onDurable: (count: number) => void;
}

export interface Closed {
  readonly perSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  /** CPU of the whole process, µs per record. */
  readonly cpuUs: number;
}

export const recordBytes = 256;

/** Keeps `outstanding` records waiting for a while: each durable one brings the next. */
export async function closedLoop(log: Log, outstanding: number, ms: number): Promise<Closed> {
  const record = new Uint8Array(recordBytes).fill(7);
  const sent = new Float64Array(1 << 20);
  const latencies: number[] = [];
  let appended = 0;
  let durable = 0;
  const from = performance.now();
  const cpu = process.cpuUsage();
  const append = (): void => {
    sent[appended % sent.length] = performance.now();
    appended += 1;
    log.append(record);
  };
  await new Promise<void>((resolve) => {
    log.onDurable = (count) => {
      const now = performance.now();
      for (; durable < count; durable++) {
        latencies.push(now - (sent[durable % sent.length] ?? now));
      }
      while (now - from < ms && appended - durable < outstanding) {
        append();
      }
      if (durable === appended) {
        resolve();
      }
    };
    for (let i = 0; i < outstanding; i++) {
      append();
    }
  });
  const seconds = (performance.now() - from) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const sorted = Float64Array.from(latencies).sort();
  const at = (p: number): number => (sorted[Math.floor((sorted.length - 1) * p)] ?? 0) * 1000;
  return {
    perSecond: durable / seconds,
    p50Us: at(0.5),
    p99Us: at(0.99),
    cpuUs: (user + system) / durable,
  };
}

/** A journal as a log; what is durable is trimmed now and then, as a store would. */
export class JournalLog implements Log {
  onDurable: (count: number) => void = () => undefined;
  readonly #journal: () => Journal;
  #base = 0;

  constructor(journal: () => Journal) {
    this.#journal = journal;
  }

  /** Counts from here. */
  begin(): this {
    this.#base = this.#journal().durable;
    this.#journal().trim(this.#journal().durable);
    return this;
  }

  append(record: Uint8Array): void {
    this.#journal().append([record]);
  }

  advanced(durable: number): void {
    this.onDurable(durable - this.#base);
  }
}

/**
 * What Node's own file calls give: everything that waits is one `fs.write`, then `fs.fdatasync`, then the next. On a log
 * file that grows, as such code does it, or in place on one that was written before.
 */
export class FsGroupCommit implements Log {
  onDurable: (count: number) => void = () => undefined;
  readonly #fd: number;
  /** Where it begins anew; null for a file that grows. */
  readonly #fileBytes: number | null;
  #waiting: Uint8Array[] = [];
  #position = 0;
  #durable = 0;
  #busy = false;

  constructor(fd: number, fileBytes: number | null) {
    this.#fd = fd;
    this.#fileBytes = fileBytes;
  }

  begin(): this {
    this.#durable = 0;
    if (this.#fileBytes === null) {
      fs.ftruncateSync(this.#fd, 0);
      this.#position = 0;
    }
    return this;
  }

  append(record: Uint8Array): void {
    this.#waiting.push(record);
    if (!this.#busy) {
      this.#busy = true;
      setImmediate(() => this.#commit());
    }
  }

  #commit(): void {
    const records = this.#waiting;
    if (records.length === 0) {
      this.#busy = false;
      return;
    }
    this.#waiting = [];
    const bytes = Buffer.concat(records);
    if (this.#position + bytes.length > (this.#fileBytes ?? Infinity)) {
      this.#position = 0;
    }
    fs.write(this.#fd, bytes, 0, bytes.length, this.#position, (failed) => {
      if (failed !== null) {
        throw failed;
      }
      fs.fdatasync(this.#fd, (unsynced) => {
        if (unsynced !== null) {
          throw unsynced;
        }
        this.#durable += records.length;
        this.onDurable(this.#durable);
        this.#commit();
      });
    });
    this.#position += bytes.length;
  }
}
