/**
 * Every limit of Forebay in one place: name, value, unit last. Both sides import this file, so an
 * edge and an origin of the same version refuse the same input.
 */

const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;

export const limits = {
  /** One record: a JSON value, a line or a body on the ingest path. */
  recordBytesMax: 1 * MiB,
  /** A request body as it came over the wire, real bytes counted, chunked too. */
  bodyBytesMax: 8 * MiB,
  /** Records in one request. */
  requestRecordsMax: 10_000,
  /** Nesting of a JSON value. */
  jsonDepthMax: 64,
  /** All header fields of a request together. */
  headerBytesMax: 16 * KiB,
  /** Request target. */
  urlBytesMax: 8 * KiB,
  /** A normalised stream path, in UTF-8 bytes. */
  streamPathBytesMax: 1024,
  producerIdBytesMax: 256,
  streamSeqBytesMax: 256,
  /** Producers remembered per stream; a flood of fresh ids beyond it is refused. */
  producersPerStreamMax: 1024,
  producerIdleMsMax: 7 * 24 * 3600 * 1000,
  contentTypeBytesMax: 256,

  /** One frame, header included. Production rows of a Durable Object end at 2 MB. */
  frameBytesMax: 1 * MiB,
  /** A batch closes at either of these. */
  batchBytesTarget: 64 * KiB,
  batchRecordsMax: 1000,
  /** Pending bytes of one Worker isolate; beyond it 503 `edge_overloaded`. */
  pendingBytesMax: 16 * MiB,
  /** How long a request waits for its batch, ms. */
  batchWaitMsMax: 10_000,
  flushAgeMs: 5,
  flushAgeMsMax: 20,
  /** Frames in one push POST. */
  pushBytesMax: 4 * MiB,
  outboxSoftBytes: 256 * MiB,
  outboxHardBytes: 1 * GiB,
  outboxBatchesMax: 10_000,
  outboxBatchAgeMsMax: 10 * 60 * 1000,

  /** One journal entry. */
  entryBytesMax: 9 * MiB,
  journalBudgetBytes: 2 * GiB,
  segmentBytes: 64 * MiB,
  journalBatchBytesTarget: 256 * KiB,
  journalBatchBytesMax: 1 * MiB,
  journalBatchesInFlightMax: 4,

  /** One read response is cut at a record boundary beyond this; one larger record comes whole. */
  readBytesMax: 4 * MiB,
  longPollMs: 30_000,
  sseLifetimeMs: 60_000,
  /** Unsent bytes of one SSE reader before it is dropped to catch up later. */
  sseBacklogBytesMax: 1 * MiB,
  waitersMax: 100_000,
} as const;

const relations: readonly (readonly [boolean, string])[] = [
  [limits.recordBytesMax <= limits.bodyBytesMax, "recordBytesMax ≤ bodyBytesMax"],
  [limits.bodyBytesMax < limits.entryBytesMax, "bodyBytesMax < entryBytesMax"],
  [limits.entryBytesMax * 2 <= limits.segmentBytes, "two entries fit in a segment"],
  [limits.batchBytesTarget <= limits.frameBytesMax, "batchBytesTarget ≤ frameBytesMax"],
  [limits.frameBytesMax <= limits.pushBytesMax, "frameBytesMax ≤ pushBytesMax"],
  [limits.outboxSoftBytes < limits.outboxHardBytes, "outboxSoftBytes < outboxHardBytes"],
];
for (const [holds, relation] of relations) {
  if (!holds) {
    throw new Error(`limits contradict each other: ${relation}`);
  }
}
