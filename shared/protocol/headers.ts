/** Header names in lower case, as node:http and Fetch present them. Durable Streams §11.2 and ours. */
export const header = {
  nextOffset: "stream-next-offset",
  upToDate: "stream-up-to-date",
  cursor: "stream-cursor",
  closed: "stream-closed",
  forkedFrom: "stream-forked-from",
  forkOffset: "stream-fork-offset",
  forkSubOffset: "stream-fork-sub-offset",
  seq: "stream-seq",
  ttl: "stream-ttl",
  expiresAt: "stream-expires-at",
  expectedOffset: "stream-expected-offset",
  sseDataEncoding: "stream-sse-data-encoding",
  producerId: "producer-id",
  producerEpoch: "producer-epoch",
  producerSeq: "producer-seq",
  producerExpectedSeq: "producer-expected-seq",
  producerReceivedSeq: "producer-received-seq",
  ack: "forebay-ack",
  position: "forebay-position",
  batchId: "forebay-batch-id",
  /** Where the sender of a request reaches this service, when that is through an edge. */
  publicUrl: "forebay-public-url",
} as const;

export const streamPrefix = "/v1/stream/";
/** Subscriptions and the keys of their signatures; no stream lies below it. */
export const controlPrefix = "/v1/stream/__ds/";
/** Whether a request target names a stream; subscriptions have their own requests below the same prefix. */
export function isStreamTarget(target: string): boolean {
  return target.startsWith(streamPrefix) && !target.startsWith(controlPrefix);
}

export const ingestPrefix = "/v1/ingest/";
export const acksPrefix = "/v1/acks/";
export const framesPath = "/v1/frames";
export const framesContentType = "application/vnd.forebay.frames";
