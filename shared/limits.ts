/**
 * Every limit of Forebay in one place: name, value, unit last. Both sides import this file, so an
 * edge and an origin of the same version refuse the same input.
 */

const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;

class Limits {
  /** One record: a JSON value, a line or a body on the ingest path. */
  readonly recordBytesMax: number = 1 * MiB;
  /** A request body as it came over the wire, real bytes counted, chunked too. */
  readonly bodyBytesMax: number = 8 * MiB;
  /** Records in one request. */
  readonly requestRecordsMax: number = 10_000;
  /** Nesting of a JSON value. */
  readonly jsonDepthMax: number = 64;
  /** All header fields of a request together. */
  readonly headerBytesMax: number = 16 * KiB;
  /** Request target. */
  readonly urlBytesMax: number = 8 * KiB;
  /** A normalised stream path, in UTF-8 bytes. */
  readonly streamPathBytesMax: number = 1024;
  readonly producerIdBytesMax: number = 256;
  readonly streamSeqBytesMax: number = 256;
  /** Producers remembered per stream; a flood of fresh ids beyond it is refused. */
  readonly producersPerStreamMax: number = 1024;
  readonly producerIdleMsMax: number = 7 * 24 * 3600 * 1000;
  readonly contentTypeBytesMax: number = 256;
  /** Bytes the store may hold: runs, and arenas with what they set aside for growth. */
  readonly storeBytesMax: number = 1024 * GiB;
  /** What is kept in memory between two checkpoints; there are two of it. */
  readonly arenaBytes: number = 128 * MiB;
  /** What is kept in memory of older records that were read. */
  readonly storeCacheBytes: number = 64 * MiB;
  readonly checkpointAgeMs: number = 10_000;
  readonly checkpointJournalBytes: number = 256 * MiB;
  /** By how much an edge's clock may be behind the origin's when the two are compared; NTP keeps both far closer. */
  readonly edgeClockSkewMsMax: number = 1000;
  /** Paths whose last life's end is remembered, so that late records of it are told from new ones. */
  readonly endsRememberedMax: number = 65_536;

  /** One frame, header included. Production rows of a Durable Object end at 2 MB. */
  readonly frameBytesMax: number = 1 * MiB;
  /** A batch closes at either of these. */
  readonly batchBytesTarget: number = 64 * KiB;
  readonly batchRecordsMax: number = 1000;
  /** Pending bytes of one Worker isolate; beyond it 503 `edge_overloaded`. */
  readonly pendingBytesMax: number = 16 * MiB;
  /** How long a request waits for its batch, ms. */
  readonly batchWaitMsMax: number = 10_000;
  readonly flushAgeMs: number = 5;
  readonly flushAgeMsMax: number = 20;
  /** Frames in one push POST. */
  readonly pushBytesMax: number = 4 * MiB;
  readonly outboxSoftBytes: number = 256 * MiB;
  readonly outboxHardBytes: number = 1 * GiB;
  readonly outboxBatchesMax: number = 10_000;
  readonly outboxBatchAgeMsMax: number = 10 * 60 * 1000;

  /** One journal entry. */
  readonly entryBytesMax: number = 9 * MiB;
  readonly journalBudgetBytes: number = 2 * GiB;
  readonly segmentBytes: number = 64 * MiB;
  readonly journalBatchBytesTarget: number = 256 * KiB;
  readonly journalBatchBytesMax: number = 1 * MiB;
  readonly journalBatchesInFlightMax: number = 4;

  /** One read response is cut at a record boundary beyond this; one larger record comes whole. */
  readonly readBytesMax: number = 4 * MiB;
  /** How long caches may keep a range that can no longer change, asked for by its offset; or from the start on. */
  readonly rangeCacheSecondsMax: number = 24 * 60 * 60;
  readonly startCacheSecondsMax: number = 60;
  readonly longPollMs: number = 30_000;
  readonly sseLifetimeMs: number = 60_000;
  /** Unsent bytes of one SSE reader before it is dropped to catch up later. */
  readonly sseBacklogBytesMax: number = 1 * MiB;
  readonly waitersMax: number = 100_000;

  readonly subscriptionsMax: number = 1000;
  /** A subscription's id, in UTF-8 bytes. */
  readonly subscriptionIdBytesMax: number = 256;
  readonly subscriptionBodyBytesMax: number = 256 * KiB;
  readonly subscriptionDescriptionBytesMax: number = 1024;
  /** Streams one subscription follows, and all of them together. */
  readonly subscriptionLinksMax: number = 10_000;
  readonly subscriptionLinksTotalMax: number = 500_000;
  /** Streams named in one request of a subscription, acknowledged ones too. */
  readonly subscriptionRequestStreamsMax: number = 1000;
  /** Streams one wake tells of, pending ones first. */
  readonly wakeStreamsMax: number = 1000;
  /** A pattern: so many bytes, so many segments (the matcher keeps them as bits of one number). */
  readonly globBytesMax: number = 1024;
  readonly globSegmentsMax: number = 30;
  readonly webhookUrlBytesMax: number = 2048;
  readonly workerNameBytesMax: number = 256;
  readonly leaseMsDefault: number = 30_000;
  readonly leaseMsMin: number = 1000;
  readonly leaseMsMax: number = 600_000;
  /** Webhooks in flight at once; those that failed before may take half. */
  readonly webhooksInFlightMax: number = 64;
  /** From the connect to the end of the answer. */
  readonly webhookMsMax: number = 10_000;
  /** What is read of a webhook's answer. */
  readonly webhookAnswerBytesMax: number = 16 * KiB;
}

export const limits: Limits = new Limits();

const relations: readonly (readonly [boolean, string])[] = [
  [limits.recordBytesMax <= limits.bodyBytesMax, "recordBytesMax ≤ bodyBytesMax"],
  [limits.bodyBytesMax < limits.entryBytesMax, "bodyBytesMax < entryBytesMax"],
  [limits.entryBytesMax * 2 <= limits.segmentBytes, "two entries fit in a segment"],
  [limits.entryBytesMax <= limits.arenaBytes, "an entry fits in an arena"],
  [
    limits.checkpointJournalBytes * 2 <= limits.journalBudgetBytes,
    "two checkpoints fit in the journal",
  ],
  [limits.batchBytesTarget <= limits.frameBytesMax, "batchBytesTarget ≤ frameBytesMax"],
  [limits.frameBytesMax <= limits.pushBytesMax, "frameBytesMax ≤ pushBytesMax"],
  [limits.globSegmentsMax <= 30, "a pattern's segments and its end are bits of a small integer"],
  [limits.outboxSoftBytes < limits.outboxHardBytes, "outboxSoftBytes < outboxHardBytes"],
];
for (const [holds, relation] of relations) {
  if (!holds) {
    throw new Error(`limits contradict each other: ${relation}`);
  }
}
