import { ForebayError } from "../../shared/errors/mod.ts";
import { type Lsn, lsn } from "../../shared/ids/mod.ts";
import { streamStateKind } from "../store/mod.ts";
import type { EntryReader, EntryWriter } from "./bytes.ts";
import { type CreateOp, type ForkEdge, opKind, readCreate, writeCreate } from "./entry.ts";
import type { ProducerState } from "./producer.ts";
import type { Counters, End, Outbox, OutboxEpoch, StreamState } from "./state.ts";
import type { TenantChange } from "./types.ts";

/*
 * The state at a checkpoint, key by key. FORMAT.md is the layout's authority.
 */

/** In the order in which they are loaded: a fork's source has a lower id. */
export const stateKind: {
  readonly shard: 1;
  readonly stream: typeof streamStateKind;
  readonly end: 3;
  readonly outbox: 4;
  readonly tenant: 5;
} = { shard: 1, stream: streamStateKind, end: 3, outbox: 4, tenant: 5 };

const stateVersion = 1;
const flag = { closed: 1, ended: 2, streamSeq: 4 } as const;

/** What belongs to no single key. */
export interface ShardRecord {
  readonly lastId: number;
  readonly endLsn: Lsn;
  readonly counters: Counters;
}

export function writeShard(to: EntryWriter, { lastId, endLsn, counters }: ShardRecord): void {
  to.u8(stateVersion);
  to.uint(lastId);
  to.uint(endLsn);
  to.uint(counters.recordsStored);
  to.uint(counters.bytesStored);
  to.uint(counters.recordsDeduplicated);
  to.uint(counters.recordsQuarantined);
  to.uint(counters.framesApplied);
  to.uint(counters.producers);
}

/** @throws ForebayError `format_unsupported` */
export function readShard(from: EntryReader): ShardRecord {
  const version = from.u8();
  if (version !== stateVersion) {
    const message = `the streams' state is of version ${version}, this build reads version ${stateVersion}`;
    throw new ForebayError("format_unsupported", message);
  }
  return {
    lastId: from.uint(),
    endLsn: lsn(from.uint()),
    counters: {
      recordsStored: from.uint(),
      bytesStored: from.uint(),
      recordsDeduplicated: from.uint(),
      recordsQuarantined: from.uint(),
      framesApplied: from.uint(),
      producers: from.uint(),
    },
  };
}

/** A stream's state, besides what its creation says. */
export interface StreamRecord {
  readonly create: CreateOp;
  readonly previousEndedAt: number;
  readonly createdLsn: Lsn;
  readonly changed: Pick<
    StreamState,
    | "closed"
    | "ended"
    | "record"
    | "byte"
    | "streamSeq"
    | "lastTime"
    | "writtenDeadline"
    | "lsn"
    | "producers"
  >;
}

export function writeStream(to: EntryWriter, stream: StreamState): void {
  writeCreate(to, createOf(stream));
  to.time(stream.previousEndedAt);
  to.uint(stream.createdLsn);
  to.u8(
    (stream.closed ? flag.closed : 0) |
      (stream.ended ? flag.ended : 0) |
      (stream.streamSeq === null ? 0 : flag.streamSeq),
  );
  to.uint(stream.record);
  to.uint(stream.byte);
  to.uint(stream.lsn);
  to.time(stream.lastTime);
  if (stream.ttlSeconds !== null) {
    to.uint(stream.writtenDeadline);
  }
  if (stream.streamSeq !== null) {
    to.text(stream.streamSeq);
  }
  const producers = stream.producers ?? new Map<string, ProducerState>();
  to.uint(producers.size);
  for (const [id, producer] of producers) {
    writeProducer(to, id, producer);
  }
}

/** What the stream was created by. `closed` is told by its state. */
function createOf(stream: StreamState): CreateOp {
  const { id, path, contentType, ttlSeconds, expiresAt, createdAt, fork } = stream;
  const edge: ForkEdge | null = fork && { ...fork, source: fork.source.id };
  const made = { id, path, contentType, ttlSeconds, expiresAt, createdAt, fork: edge };
  return { kind: opKind.create, ...made, closed: false };
}

export function readStream(from: EntryReader): StreamRecord {
  const create = readCreate(from);
  const previousEndedAt = from.time();
  const createdLsn = lsn(from.uint());
  const flags = from.u8();
  const [record, byte, at, lastTime] = [from.uint(), from.uint(), lsn(from.uint()), from.time()];
  const writtenDeadline =
    create.ttlSeconds === null ? (create.expiresAt?.ms ?? Number.POSITIVE_INFINITY) : from.uint();
  const streamSeq = (flags & flag.streamSeq) === 0 ? null : from.text();
  const producers: Map<string, ProducerState> = new Map();
  for (let left = from.count(); left > 0; left--) {
    producers.set(from.text(), readProducer(from));
  }
  const changed = {
    closed: (flags & flag.closed) !== 0,
    ended: (flags & flag.ended) !== 0,
    ...{ record, byte, streamSeq, lastTime, writtenDeadline, lsn: at },
    producers: producers.size === 0 ? null : producers,
  };
  return { create, previousEndedAt, createdLsn, changed };
}

function writeProducer(to: EntryWriter, id: string, producer: ProducerState): void {
  to.text(id);
  to.uint(producer.epoch);
  to.uint(producer.highest);
  // -1 when no seq is known to be complete.
  to.uint(producer.complete + 1);
  to.uint(producer.low >>> 0);
  to.uint(producer.high >>> 0);
  to.time(producer.usedAt);
}

function readProducer(from: EntryReader): ProducerState {
  return {
    epoch: from.uint(),
    highest: from.uint(),
    complete: from.uint() - 1,
    low: from.uint() | 0,
    high: from.uint() | 0,
    usedAt: from.time(),
  };
}

export function writeEnd(to: EntryWriter, path: string, { at, lsn: ended }: End): void {
  to.text(path);
  to.time(at);
  to.uint(ended);
}

export function readEnd(from: EntryReader): { readonly path: string } & Omit<End, "id"> {
  return { path: from.text(), at: from.time(), lsn: lsn(from.uint()) };
}

export function writeOutbox(to: EntryWriter, buffer: string, outbox: Outbox): void {
  to.text(buffer);
  to.text(outbox.epoch);
  to.uint(outbox.boot);
  to.uint(outbox.epochs.size);
  for (const [epoch, { fsn, helloBoot, frameBoot, lsn: at }] of outbox.epochs) {
    to.text(epoch);
    to.uint(fsn);
    to.uint(helloBoot);
    to.uint(frameBoot);
    to.uint(at);
  }
}

export function readOutbox(from: EntryReader): { buffer: string; outbox: Outbox } {
  const buffer = from.text();
  const [epoch, boot] = [from.text(), from.uint()];
  const epochs: Map<string, OutboxEpoch> = new Map();
  for (let left = from.count(); left > 0; left--) {
    const name = from.text();
    const [fsn, helloBoot, frameBoot] = [from.uint(), from.uint(), from.uint()];
    epochs.set(name, { fsn, helloBoot, frameBoot, lsn: lsn(from.uint()) });
  }
  return { buffer, outbox: { epoch, boot, epochs } };
}

export function writeTenant(to: EntryWriter, changes: Iterable<TenantChange>): void {
  for (const { code, body } of changes) {
    to.u8(code);
    to.uint(body.length);
    to.bytes(body);
  }
}

export function* readTenant(from: EntryReader): Generator<TenantChange> {
  while (!from.done) {
    yield { code: from.u8(), body: from.bytes(from.uint()) };
  }
}
