/** Exact counts since open, kept where the work is done. */
export interface Counters {
  entries: number;
  batches: number;
  /** Calls that made something durable: a synced write, fdatasync, a directory's fsync. */
  syncs: number;
  /** Bytes handed to the device: batches with their padding, prepared segments, manifest records. */
  bytesWritten: number;
}

export function newCounters(): Counters {
  return { entries: 0, batches: 0, syncs: 0, bytesWritten: 0 };
}
