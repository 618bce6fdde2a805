import type { Partition } from "./brands.ts";

/**
 * FNV-1a over the UTF-16 code units of a normalised stream path (which is ASCII), 32 bits, with the
 * murmur3 finaliser so that the low bits can be masked. The same hash places a stream on an outbox
 * (edge) and on a shard (origin).
 */
export function streamHash(path: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < path.length; i++) {
    h = Math.imul(h ^ path.charCodeAt(i), 0x01000193);
  }
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** The outbox of a stream. `partitions` is a power of two. */
export function partitionOf(path: string, partitions: number): Partition {
  return (streamHash(path) & (partitions - 1)) as Partition;
}
