/** What the store has done and met; every number is exact. */
export interface Counters {
  checkpoints: number;
  checkpointFailures: number;
  merges: number;
  mergeFailures: number;
  bytesWritten: number;
  bytesRead: number;
  bytesReturned: number;
  bytesHashed: number;
  chunksVisited: number;
  damagedRecords: number;
  damagedTables: number;
  damagedIndexes: number;
  repairedPages: number;
}

export function newCounters(): Counters {
  return {
    checkpoints: 0,
    checkpointFailures: 0,
    merges: 0,
    mergeFailures: 0,
    bytesWritten: 0,
    bytesRead: 0,
    bytesReturned: 0,
    bytesHashed: 0,
    chunksVisited: 0,
    damagedRecords: 0,
    damagedTables: 0,
    damagedIndexes: 0,
    repairedPages: 0,
  };
}
