import { limits } from "../../shared/limits.ts";
import { type Lsn, lsn, type StreamId } from "../../shared/ids/mod.ts";
import { isJson, mediaType, type Offset } from "../../shared/protocol/mod.ts";
import type { CreateOp } from "./entry.ts";
import type { ProducerState } from "./producer.ts";
import type { Follower } from "./types.ts";

/** A reserved path: readable, written by Forebay alone. */
export const quarantinePath = "_forebay/quarantine";

/** Where a fork's beginning lies: `source` has its first `records` records, whose bytes are `bytes`. */
export interface Fork {
  readonly source: StreamState;
  readonly offset: Offset;
  readonly subOffset: number;
  readonly records: number;
  readonly bytes: number;
}

/**
 * One life of a stream. The first part is given at creation, the second is changed by `apply` only, the third is what
 * of it is durable, kept by `touched.ts`.
 *
 * Invariants: durableRecord ≤ record, durableByte ≤ byte; closed and ended never go back; `forks` counts the streams
 * whose `fork.source` it is and whose data is kept, so it is 0 before its own data is given up;
 * writtenDeadline ≤ deadline ≤ writtenDeadline + TTL/8 as far as the journal can be written.
 */
export interface StreamState {
  readonly id: StreamId;
  readonly path: string;
  readonly contentType: string;
  /** Content type without parameters, in lower case. */
  readonly mediaType: string;
  readonly json: boolean;
  readonly createdAt: number;
  /** When the path's life before this one ended; 0 if none is remembered. */
  readonly previousEndedAt: number;
  readonly ttlSeconds: number | null;
  readonly expiresAt: { readonly text: string; readonly ms: number } | null;
  readonly createdLsn: Lsn;
  /** Null when it began empty. */
  readonly fork: Fork | null;

  closed: boolean;
  /** Deleted or expired; no longer in the directory. */
  ended: boolean;
  forks: number;
  record: number;
  byte: number;
  streamSeq: string | null;
  /** Time of the newest record; times of a stream never fall back. */
  lastTime: number;
  /** When it expires, ms; Infinity without TTL and Expires-At. Moved in memory by every touch. */
  deadline: number;
  /** The deadline that replay would arrive at. */
  writtenDeadline: number;
  producers: Map<string, ProducerState> | null;
  /** No producer is idle for long enough to leave before this time; only spares scans. */
  producersIdleFrom: number;
  /** Newest entry that changed the stream; a touch does not count. */
  lsn: Lsn;

  /** The checkpoint interval it last changed in, as `changes.ts` counts them; 0 when no checkpoint has to know. */
  changedIn: number;

  durableRecord: number;
  durableByte: number;
  durableClosed: boolean;
  followers: Set<Follower> | null;
  /** Mark of the durable advance that last put it on the list of those to tell. */
  toldAt: number;
}

/** What the path and its source bring to a new stream. */
export interface Ancestry {
  readonly previousEndedAt: number;
  /** The stream that `op.fork` names. */
  readonly source: StreamState | null;
}

/** A stream as `op` makes it, at `createdLsn`. */
export function streamOf(op: CreateOp, ancestry: Ancestry, createdLsn: Lsn): StreamState {
  const { previousEndedAt, source } = ancestry;
  const fork = source === null || op.fork === null ? null : { ...op.fork, source };
  const record = fork?.records ?? 0;
  const byte = fork?.bytes ?? 0;
  const type = mediaType(op.contentType);
  const slidingDeadline =
    op.ttlSeconds === null ? Number.POSITIVE_INFINITY : op.createdAt + op.ttlSeconds * 1000;
  const deadline = op.expiresAt?.ms ?? slidingDeadline;
  return {
    id: op.id,
    path: op.path,
    contentType: op.contentType,
    mediaType: type,
    json: isJson(type),
    createdAt: op.createdAt,
    previousEndedAt,
    ttlSeconds: op.ttlSeconds,
    expiresAt: op.expiresAt,
    createdLsn,
    fork,
    closed: op.closed,
    ended: false,
    forks: 0,
    record,
    byte,
    streamSeq: null,
    lastTime: op.createdAt,
    deadline,
    writtenDeadline: deadline,
    producers: null,
    producersIdleFrom: 0,
    lsn: createdLsn,
    changedIn: 0,
    // What it inherits is durable before it is: its own entry comes later.
    durableRecord: record,
    durableByte: byte,
    durableClosed: false,
    followers: null,
    toldAt: 0,
  };
}

/** What the shard knows of one outbox epoch. */
export interface OutboxEpoch {
  /** Highest FSN applied, 0 for none. */
  fsn: number;
  /** Highest boot of a HELLO. */
  helloBoot: number;
  /** Highest boot of an applied frame: rows of newer boots cannot be here. */
  frameBoot: number;
  lsn: Lsn;
}

export interface Outbox {
  /** The epoch of the newest HELLO by boot; frames of another one are stale. */
  epoch: string;
  boot: number;
  readonly epochs: Map<string, OutboxEpoch>;
}

/** A path's last life, after its end. */
export interface End {
  readonly at: number;
  /** The stream that lived there. */
  readonly id: StreamId;
  /** The entry that ended it. */
  readonly lsn: Lsn;
}

export interface Counters {
  recordsStored: number;
  bytesStored: number;
  recordsDeduplicated: number;
  recordsQuarantined: number;
  framesApplied: number;
  producers: number;
}

/** All that replay rebuilds. Changed by `apply` only. */
export class ShardState {
  readonly byPath: Map<string, StreamState> = new Map();
  readonly byId: Map<StreamId, StreamState> = new Map();
  /** Streams that have ended and that forks still read, by path: the path is not free. */
  readonly softDeleted: Map<string, StreamState> = new Map();
  /** When the last life of a path ended; oldest first, at most `endsRememberedMax`. */
  readonly ends: Map<string, End> = new Map();
  readonly outboxes: Map<string, Outbox> = new Map();
  /** Streams so far; the next one gets this + 1. */
  lastId = 0;
  /** Newest entry that ended a stream: what "no such stream" is judged by. */
  endLsn: Lsn = lsn(0);
  readonly counters: Counters = {
    recordsStored: 0,
    bytesStored: 0,
    recordsDeduplicated: 0,
    recordsQuarantined: 0,
    framesApplied: 0,
    producers: 0,
  };
}

/** The producer's state, unless it was idle for so long that it has left. */
export function producerOf(
  stream: StreamState,
  id: string,
  time: number,
): ProducerState | undefined {
  const state = stream.producers?.get(id);
  return state === undefined || isIdle(state, time) ? undefined : state;
}

export function isIdle(state: ProducerState, time: number): boolean {
  return time - state.usedAt > limits.producerIdleMsMax;
}

/** The time of a record written now: the clock's, never below the stream's newest. */
export function recordTime(stream: StreamState, now: number): number {
  return now > stream.lastTime ? now : stream.lastTime;
}

export function outboxEpoch(
  state: ShardState,
  buffer: string,
  epoch: string,
): OutboxEpoch | undefined {
  return state.outboxes.get(buffer)?.epochs.get(epoch);
}
