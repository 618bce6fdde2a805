import { closeSync, openSync, readFileSync, writeSync, fdatasync } from "node:fs";

/** What a client sends as one request, and what it was told. `none` is never acknowledged. */
export type Level = "none" | "edge" | "origin";

/** `sent` stands before the first byte leaves, `acked` before the client goes on. */
export interface LedgerEntry {
  readonly what: "sent" | "acked";
  readonly stream: string;
  /** `<id>@<producer epoch>`. */
  readonly producer: string;
  readonly seq: number;
  readonly records: number;
  readonly level: Level;
}

/**
 * The clients' own account, kept apart from all that is tested: lines in a file, each on disk before `note` resolves.
 * What is noted in one turn shares a sync.
 */
export class Ledger {
  readonly path: string;
  readonly #fd: number;
  #lines: string[] = [];
  #waiting: (() => void)[] = [];
  #syncing = false;

  constructor(path: string) {
    this.path = path;
    this.#fd = openSync(path, "a");
  }

  note(entry: LedgerEntry): Promise<void> {
    this.#lines.push(`${JSON.stringify(entry)}\n`);
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (!this.#syncing) {
        this.#syncing = true;
        setImmediate(() => this.#sync());
      }
    });
  }

  close(): void {
    closeSync(this.#fd);
  }

  #sync(): void {
    const waiting = this.#waiting;
    writeSync(this.#fd, this.#lines.join(""));
    this.#lines = [];
    this.#waiting = [];
    fdatasync(this.#fd, (error) => {
      if (error !== null) {
        throw error;
      }
      this.#syncing = this.#waiting.length > 0;
      if (this.#syncing) {
        setImmediate(() => this.#sync());
      }
      waiting.forEach((resolve) => resolve());
    });
  }
}

/** The entries of a ledger's file, oldest first. A last line that was cut off was never sworn to. */
export function readLedger(path: string): LedgerEntry[] {
  const whole = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return whole.map((line) => JSON.parse(line) as LedgerEntry);
}
