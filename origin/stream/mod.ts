/** The streams: what requests do to them, what is durable of them, and who waits for it. */
export { EntryReader, EntryWriter } from "./bytes.ts";
export { unlessCold } from "./cold.ts";
export { quarantinePath } from "./state.ts";
export { createStreams, type OwnedStreams, type StreamsOptions } from "./streams.ts";
export type {
  AppendRequest,
  CreateRequest,
  Follower,
  GateWaiter,
  IngestRequest,
  ListedStream,
  Loading,
  ReadBatch,
  ReadOptions,
  StreamLife,
  StreamMeta,
  Streams,
  StreamsStats,
  Tenant,
  TenantChange,
  Verdict,
} from "./types.ts";
