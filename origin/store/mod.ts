/** The store: records by stream and number, in memory and in runs on disk; checkpoints. */
export { openStore, type Store, type StoreOptions } from "./store.ts";
export { Cold, streamStateKind } from "./types.ts";
export type {
  CheckpointJournal,
  CheckpointOwner,
  FrozenState,
  RecordPlace,
  RecordRange,
  RecordStore,
  StateEntry,
  StoreStats,
} from "./types.ts";
