import { ForebayError } from "../../shared/errors/mod.ts";
import type { ProducerTag } from "../../shared/frame/mod.ts";
import { type StreamId, streamId } from "../../shared/ids/mod.ts";
import type { Offset } from "../../shared/protocol/mod.ts";
import { corrupt, EntryReader, type EntryWriter } from "./bytes.ts";

/*
 * The ops of a journal entry and their bytes. FORMAT.md is the layout's authority.
 */

export const opKind = {
  create: 1,
  append: 2,
  delete: 3,
  expire: 4,
  touch: 5,
  hello: 6,
  advance: 7,
  quarantined: 8,
  /** And the fifteen after it. */
  tenant: 32,
} as const;

/**
 * The edge from a fork to the stream it reads its beginning from. The source is named by its id, which is its
 * generation: a path created again is never meant.
 */
export interface ForkEdge {
  readonly source: StreamId;
  /** Where it was asked to begin: an offset of the source, and how far past it. */
  readonly offset: Offset;
  readonly subOffset: number;
  /** What the fork has of the source: so many records, so many bytes. The last record may be the head of one only. */
  readonly records: number;
  readonly bytes: number;
}

export interface CreateOp {
  readonly kind: 1;
  readonly id: StreamId;
  readonly path: string;
  /** Null for a stream that begins empty. */
  readonly fork: ForkEdge | null;
  readonly contentType: string;
  readonly ttlSeconds: number | null;
  readonly expiresAt: { readonly text: string; readonly ms: number } | null;
  readonly createdAt: number;
  readonly closed: boolean;
}

export interface AppendOp {
  readonly kind: 2;
  readonly id: StreamId;
  readonly time: number;
  readonly producer: ProducerTag | null;
  readonly streamSeq: string | null;
  /** The edge's clock, for what came in an outbox frame; null otherwise. */
  readonly acceptedAt: number | null;
  readonly records: readonly Uint8Array[];
  readonly close: boolean;
}

/** The life of a stream ends: deleted, or expired. */
export interface EndOp {
  readonly kind: 3 | 4;
  readonly id: StreamId;
  readonly time: number;
}

export interface TouchOp {
  readonly kind: 5;
  readonly id: StreamId;
  readonly time: number;
}

export interface HelloOp {
  readonly kind: 6;
  readonly buffer: string;
  readonly epoch: string;
  readonly boot: number;
}

export interface AdvanceOp {
  readonly kind: 7;
  readonly buffer: string;
  readonly epoch: string;
  readonly boot: number;
  readonly fsn: number;
  readonly deduplicated: number;
}

/** So many records of a frame lie in what its entry appends to the quarantine stream. */
export interface QuarantinedOp {
  readonly kind: 8;
  readonly records: number;
}

/** An op that only the shard's tenant understands (FORMAT.md). */
export interface TenantOp {
  readonly kind: 32;
  /** 32 to 47. */
  readonly code: number;
  readonly body: Uint8Array;
}

export type Op =
  | CreateOp
  | AppendOp
  | EndOp
  | TouchOp
  | HelloOp
  | AdvanceOp
  | QuarantinedOp
  | TenantOp;

const tenantCodes = { first: opKind.tenant, last: 47 } as const;

const entryVersion = 1;
const createFlag = { ttl: 1, expiresAt: 2, closed: 4, fork: 8 } as const;
const appendFlag = { producer: 1, streamSeq: 2, close: 4, accepted: 8 } as const;

/** What a stream is created as when a key may create it and the request names no type. */
export const jsonType = "application/json";

/** A stream that begins empty, without TTL and Expires-At, open. */
export function newStream(id: number, path: string, contentType: string, now: number): CreateOp {
  return {
    kind: opKind.create,
    id: streamId(id),
    path,
    fork: null,
    contentType,
    ttlSeconds: null,
    expiresAt: null,
    createdAt: now,
    closed: false,
  };
}

/** Begins an entry in `to`; its ops follow by `writeOp`. */
export function beginEntry(to: EntryWriter): void {
  to.begin();
  to.u8(entryVersion);
}

export function writeOp(to: EntryWriter, op: Op): void {
  to.u8(op.kind === opKind.tenant ? op.code : op.kind);
  switch (op.kind) {
    case opKind.tenant:
      to.uint(op.body.length);
      to.bytes(op.body);
      return;
    case opKind.append:
      writeAppend(to, op);
      return;
    case opKind.create:
      writeCreate(to, op);
      return;
    case opKind.delete:
    case opKind.expire:
    case opKind.touch:
      to.uint(op.id);
      to.time(op.time);
      return;
    case opKind.hello:
      to.text(op.buffer);
      to.text(op.epoch);
      to.uint(op.boot);
      return;
    case opKind.advance:
      to.text(op.buffer);
      to.text(op.epoch);
      to.uint(op.boot);
      to.uint(op.fsn);
      to.uint(op.deduplicated);
      return;
    case opKind.quarantined:
      to.uint(op.records);
      return;
  }
}

/** Without its kind. */
export function writeCreate(to: EntryWriter, op: CreateOp): void {
  to.u8(
    (op.ttlSeconds === null ? 0 : createFlag.ttl) |
      (op.expiresAt === null ? 0 : createFlag.expiresAt) |
      (op.closed ? createFlag.closed : 0) |
      (op.fork === null ? 0 : createFlag.fork),
  );
  to.uint(op.id);
  to.time(op.createdAt);
  to.text(op.path);
  to.text(op.contentType);
  if (op.ttlSeconds !== null) {
    to.uint(op.ttlSeconds);
  }
  if (op.expiresAt !== null) {
    to.time(op.expiresAt.ms);
    to.text(op.expiresAt.text);
  }
  if (op.fork !== null) {
    to.uint(op.fork.source);
    to.uint(op.fork.offset.record);
    to.uint(op.fork.offset.byte);
    to.uint(op.fork.subOffset);
    to.uint(op.fork.records);
    to.uint(op.fork.bytes);
  }
}

function writeAppend(to: EntryWriter, op: AppendOp): void {
  to.u8(
    (op.producer === null ? 0 : appendFlag.producer) |
      (op.streamSeq === null ? 0 : appendFlag.streamSeq) |
      (op.close ? appendFlag.close : 0) |
      (op.acceptedAt === null ? 0 : appendFlag.accepted),
  );
  to.uint(op.id);
  to.time(op.time);
  if (op.producer !== null) {
    to.text(op.producer.id);
    to.uint(op.producer.epoch);
    to.uint(op.producer.seq);
  }
  if (op.streamSeq !== null) {
    to.text(op.streamSeq);
  }
  if (op.acceptedAt !== null) {
    to.time(op.acceptedAt);
  }
  const records = op.records;
  to.uint(records.length);
  for (const record of records) {
    to.uint(record.length);
  }
  for (const record of records) {
    to.bytes(record);
  }
}

/**
 * The ops of an entry. Records are views of `bytes`.
 *
 * @throws ForebayError `journal_corrupt`
 */
export function decodeEntry(bytes: Uint8Array): Op[] {
  const from = new EntryReader(bytes);
  const version = from.u8();
  if (version !== entryVersion) {
    const what = `a journal entry is of version ${version}, this build reads version ${entryVersion}`;
    throw new ForebayError("format_unsupported", what);
  }
  const ops: Op[] = [];
  do {
    ops.push(readOp(from));
  } while (!from.done);
  return ops;
}

function readOp(from: EntryReader): Op {
  const kind = from.u8();
  switch (kind) {
    case opKind.create:
      return readCreate(from);
    case opKind.append:
      return readAppend(from);
    case opKind.delete:
    case opKind.expire:
    case opKind.touch:
      return { kind, id: streamId(from.uint()), time: from.time() };
    case opKind.hello:
      return { kind, buffer: from.text(), epoch: from.text(), boot: from.uint() };
    case opKind.advance:
      return {
        kind,
        buffer: from.text(),
        epoch: from.text(),
        boot: from.uint(),
        fsn: from.uint(),
        deduplicated: from.uint(),
      };
    case opKind.quarantined:
      return { kind, records: from.uint() };
    default:
      if (kind < tenantCodes.first || kind > tenantCodes.last) {
        throw corrupt(`holds an op of unknown kind ${kind}`);
      }
      return { kind: opKind.tenant, code: kind, body: from.bytes(from.uint()) };
  }
}

export function readCreate(from: EntryReader): CreateOp {
  const flags = from.u8();
  const id = streamId(from.uint());
  const createdAt = from.time();
  const path = from.text();
  const contentType = from.text();
  const ttlSeconds = (flags & createFlag.ttl) === 0 ? null : from.uint();
  let expiresAt: CreateOp["expiresAt"] = null;
  if ((flags & createFlag.expiresAt) !== 0) {
    const ms = from.time();
    expiresAt = { ms, text: from.text() };
  }
  const fork = (flags & createFlag.fork) === 0 ? null : readForkEdge(from);
  const closed = (flags & createFlag.closed) !== 0;
  const made = { id, path, fork, contentType, ttlSeconds, expiresAt, createdAt, closed };
  return { kind: opKind.create, ...made };
}

function readForkEdge(from: EntryReader): ForkEdge {
  return {
    source: streamId(from.uint()),
    offset: { record: from.uint(), byte: from.uint() },
    subOffset: from.uint(),
    records: from.uint(),
    bytes: from.uint(),
  };
}

function readAppend(from: EntryReader): AppendOp {
  const flags = from.u8();
  const id = streamId(from.uint());
  const time = from.time();
  let producer: ProducerTag | null = null;
  if ((flags & appendFlag.producer) !== 0) {
    producer = { id: from.text(), epoch: from.uint(), seq: from.uint() };
  }
  const streamSeq = (flags & appendFlag.streamSeq) === 0 ? null : from.text();
  const acceptedAt = (flags & appendFlag.accepted) === 0 ? null : from.time();
  const lengths: number[] = [];
  for (let left = from.count(); left > 0; left--) {
    lengths.push(from.uint());
  }
  const records = lengths.map((length) => from.bytes(length));
  const close = (flags & appendFlag.close) !== 0;
  return { kind: opKind.append, id, time, producer, streamSeq, acceptedAt, records, close };
}
