/** Distinct types for distinct numbers, and the hash that places a stream. */
export type { Fsn, Lsn, Partition, StreamId } from "./brands.ts";
export { fsn, lsn, streamId } from "./brands.ts";
export { partitionOf, streamHash } from "./hash.ts";
export { formatPosition, parsePosition, type Position } from "./position.ts";
