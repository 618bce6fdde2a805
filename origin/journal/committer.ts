import type { AreaSource } from "./areas.ts";
import type { Batch } from "./batch.ts";
import type { CommitFile } from "./commitFile.ts";

export interface CommitterEvents {
  /** Every batch up to here is on the device; called once per advance. */
  onAdvance(lastLsn: number): void;
  onFailed(error: unknown): void;
}

/**
 * Makes batches durable: writes overlap and finish in any order, batches are acknowledged strictly in the order they
 * were submitted in. A failed batch stays at the front for good: nothing behind it is ever acknowledged.
 */
export interface Committer extends AreaSource {
  /** Who is told, and who takes the memory of a durable batch back; before the first batch. */
  serve(events: CommitterEvents, giveBack: (area: Uint8Array) => void): void;
  /** Batches submitted and not known durable. */
  readonly inFlight: number;
  /** So many may be in flight at once; those that no write is free for wait inside. */
  readonly inFlightMax: number;
  /** Takes a batch for `file`, the active segment's, which `salt` belongs to. All batches of another are durable. */
  submit(batch: Batch, file: CommitFile, salt: number): void;
  /** Tells what has become durable and was not told yet. */
  look(): void;
  /** Resolves when no write is under way, however they ended. */
  settled(): Promise<void>;
  /** Lets go of threads and memory; nothing is in flight. */
  close(): void;
}
