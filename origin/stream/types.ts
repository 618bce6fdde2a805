import type { ErrorCode } from "../../shared/errors/mod.ts";
import type { Frame, Hello, ProducerTag, RequestResult, Welcome } from "../../shared/frame/mod.ts";
import type { Lsn } from "../../shared/ids/mod.ts";

/**
 * The answer to one request, judged at once, to be sent when `lsn` is durable (DESIGN, output gate): success
 * and refusal alike carry the LSN of the newest entry they were judged by.
 */
export interface Verdict {
  readonly status: number;
  /** The catalogue's code of a refusal, null for success. */
  readonly code: ErrorCode | null;
  readonly detail: string | null;
  /** Response header fields as a flat list [name, value, …], names in lower case. */
  readonly headers: readonly string[];
  readonly lsn: Lsn;
}

/** What a fork asks for (Durable Streams §4.2). */
export interface ForkRequest {
  /** Path of the source. */
  readonly from: string;
  /** As sent; null means the source's tail. */
  readonly offset: string | null;
  /** How far past the offset: JSON values, or bytes of the one record there. */
  readonly subOffset: number;
}

export interface CreateRequest {
  readonly path: string;
  /** As sent; null means `application/octet-stream`, or a fork's source's. */
  readonly contentType: string | null;
  /** Null for a stream that begins empty. A fork without TTL and Expires-At has its source's. */
  readonly fork: ForkRequest | null;
  readonly ttlSeconds: number | null;
  /** As sent (RFC 3339), already validated; with its time in ms. */
  readonly expiresAt: { readonly text: string; readonly ms: number } | null;
  readonly closed: boolean;
  readonly body: Uint8Array;
}

export interface AppendRequest {
  readonly path: string;
  readonly contentType: string | null;
  /** The body as it came. A JSON stream flattens one array level. Empty only with `close`. */
  readonly body: Uint8Array;
  readonly producer: ProducerTag | null;
  readonly streamSeq: string | null;
  readonly expectedOffset: string | null;
  readonly close: boolean;
}

/** Ingest: records already split; a missing stream is created as `contentType` when `create`. */
export interface IngestRequest {
  readonly path: string;
  readonly contentType: string;
  readonly records: readonly Uint8Array[];
  readonly producer: ProducerTag | null;
  readonly create: boolean;
}

export interface StreamMeta {
  readonly id: number;
  readonly contentType: string;
  readonly json: boolean;
  readonly closed: boolean;
  readonly tail: string;
  readonly ttlSeconds: number | null;
  readonly expiresAt: string | null;
  /** Newest entry that changed the stream. */
  readonly lsn: Lsn;
}

export interface ReadOptions {
  /** Payload bytes; one larger record comes whole. */
  readonly maxBytes: number;
  /** Moves a sliding TTL (P4). */
  readonly touch: boolean;
  /** The stream's id as an earlier answer gave it: refuses (410) when the path is another stream by now. */
  readonly id?: number;
}

/** Durable records from an offset on, cut at a record boundary. Views, valid until the event loop turns. */
export interface ReadBatch {
  readonly id: number;
  readonly records: readonly Uint8Array[];
  /** Offset of the first record, and after the last. */
  readonly start: string;
  readonly next: string;
  /** Nothing durable lies beyond `next`. */
  readonly upToDate: boolean;
  /** The stream is durably closed and `next` is its end. */
  readonly closed: boolean;
  /** The stream's creation. Durable unless the stream was made just now: then the answer must wait for it. */
  readonly lsn: Lsn;
}

/** The answer lies on disk: ask again when `loading` has resolved. It rejects with ForebayError `store_failed`. */
export interface Loading {
  readonly loading: Promise<void>;
}

export interface ListedStream extends StreamMeta {
  readonly path: string;
}

/** Held by the gate until durable. One object per request, no closure needed: implement it on the request's own state. */
export interface GateWaiter {
  /** Everything the reply was judged by is durable. */
  release(): void;
  /** The commit failed: answer 503 `outcome_unknown`. */
  fail(error: Error): void;
}

/** A follower of one stream (long-poll, SSE). Called after each durable advance, on close, delete and expiry. */
export interface Follower {
  onAdvance(): void;
}

/** One life of a path, and how much of it is reserved and how much durable. */
export interface StreamLife {
  readonly id: number;
  readonly path: string;
  readonly record: number;
  readonly byte: number;
  readonly durableRecord: number;
  readonly durableByte: number;
}

/** A change of the tenant's state, as it lies in the journal. */
export interface TenantChange {
  /** 32 to 47. */
  readonly code: number;
  readonly body: Uint8Array;
}

/** Who keeps other state than the streams in the shard's journal, and follows all streams for it. */
export interface Tenant {
  /** Live and at replay: the one way its state changes. `body` is a view. */
  apply(code: number, body: Uint8Array, lsn: Lsn): void;
  /** Changes that make of an empty tenant what this one is, for a checkpoint: entries before it are not replayed. */
  state(): Iterable<TenantChange>;
  /** A change of a stream became durable; `created` with the one that made the stream. Not the moment to write. */
  onDurable(life: StreamLife, created: boolean): void;
  /** After each durable advance, when readers have been told: the moment to look around and to write. */
  onAdvanced(): void;
}

/**
 * The streams of one shard: pure decisions over in-memory state, entries into the journal, durable state out.
 * All methods are synchronous. Refusals are verdicts, not exceptions; only `journal.append` failures (disk_full,
 * journal_failed …) come as ForebayError, with nothing changed.
 */
export interface Streams {
  /** `Loading` when a fork's place in its source has to be looked up. */
  create(request: CreateRequest): Verdict | Loading;
  append(request: AppendRequest): Verdict;
  ingest(request: IngestRequest): Verdict;
  remove(path: string): Verdict;
  /** Metadata by the newest reserved state, or a refusal (404/410) to be gated. Does not move a sliding TTL. */
  meta(path: string): StreamMeta | Verdict;
  /**
   * Durable records from `offset` ("-1" = start, "now" = behind the last durable one).
   * A refusal: 404, 410, 400 bad_offset with the durable tail in Stream-Next-Offset (P11), 500 record_damaged.
   */
  read(path: string, offset: string, options: ReadOptions): ReadBatch | Verdict | Loading;
  list(prefix: string, after: string, limit: number): ListedStream[];
  /** For who has read the stream's tail in this same turn: news is told from here on. */
  follow(path: string, follower: Follower): void;
  unfollow(path: string, follower: Follower): void;
  /** Calls `waiter.release` at once when `lsn` is durable, else when it becomes so, in order of `hold` calls. */
  hold(lsn: Lsn, waiter: GateWaiter): void;
  /** The living stream at `path`. Writes nothing: the end of one that has expired is left to who asks for it. */
  life(path: string): StreamLife | undefined;
  /** All living streams. */
  lives(): Iterable<StreamLife>;
  /** The tenant's changes in one entry, applied by it. @throws ForebayError as `append` */
  commitTenant(ops: readonly TenantChange[]): Lsn;
  hello(hello: Hello): { readonly welcome: Welcome; readonly lsn: Lsn };
  /** A direct frame: one result per request, in order. The reply waits for `lsn`. */
  applyDirect(frame: Frame): { readonly results: readonly RequestResult[]; readonly lsn: Lsn };
  /** An outbox frame: applied, a replay, or refused as a whole. */
  applyFrame(frame: Frame):
    | { readonly kind: "applied" | "replayed"; readonly fsn: number; readonly lsn: Lsn }
    | {
        readonly kind: "refused";
        readonly code: ErrorCode;
        readonly retryable: boolean;
        readonly expectedFsn: number;
        readonly message: string;
      };
  stats(): StreamsStats;
}

/** Ledger counters (DESIGN, promise 5), rebuilt by replay; gauges of now. */
export interface StreamsStats {
  readonly streams: number;
  /** Records ever stored in streams, the quarantine stream not counted. */
  readonly recordsStored: number;
  readonly bytesStored: number;
  /** Records of outbox frames that were stored before. */
  readonly recordsDeduplicated: number;
  readonly recordsQuarantined: number;
  readonly framesApplied: number;
  /** Frames acknowledged again, since start: they leave no trace to rebuild it from. */
  readonly framesReplayed: number;
  readonly producers: number;
  readonly waiting: number;
  readonly followers: number;
}
