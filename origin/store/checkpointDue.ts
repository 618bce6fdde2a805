/** What decides about the next checkpoint. Times in ms. */
export interface CheckpointView {
  readonly now: number;
  /** A checkpoint is being made. */
  readonly running: boolean;
  /** When the first entry above the last closing came; null when there is none. */
  readonly openedAt: number | null;
  /** By how much the journal has grown since the last closing. */
  readonly journalBytes: number;
}

export interface CheckpointLimits {
  readonly ageMsMax: number;
  readonly journalBytesMax: number;
}

/** When to close the arena: a time not after `now` means at once, null that nothing is due as things are. */
export function checkpointDue(view: CheckpointView, limits: CheckpointLimits): number | null {
  if (view.running || view.openedAt === null) {
    return null;
  }
  return view.journalBytes >= limits.journalBytesMax ? view.now : view.openedAt + limits.ageMsMax;
}

const retryMs = 1000;
const retryMsMax = 30_000;

/** How long to wait after so many failures in a row. */
export function retryAfter(failures: number): number {
  return Math.min(retryMs * 2 ** (failures - 1), retryMsMax);
}
