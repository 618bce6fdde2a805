import { invariant } from "../../shared/errors/mod.ts";
import { type Lsn, lsn as toLsn } from "../../shared/ids/mod.ts";
import { limits } from "../../shared/limits.ts";
import type { RecordPlace, RecordStore } from "../store/mod.ts";
import type { Changes } from "./changes.ts";
import {
  type AdvanceOp,
  type AppendOp,
  type CreateOp,
  type EndOp,
  type HelloOp,
  type Op,
  opKind,
  type TouchOp,
} from "./entry.ts";
import { admitSeq } from "./producer.ts";
import {
  type End,
  isIdle,
  type OutboxEpoch,
  quarantinePath,
  recordTime,
  type ShardState,
  type StreamState,
  streamOf,
} from "./state.ts";
import type { TouchedStreams } from "./touched.ts";
import type { Tenant } from "./types.ts";

/** What an op changes. */
export interface Target {
  readonly state: ShardState;
  readonly store: RecordStore;
  readonly touched: TouchedStreams;
  readonly changes: Changes;
  readonly tenant: Tenant | null;
}

/**
 * The one way the state of the streams changes, live and at replay: the state after op n depends on the
 * state before and the op alone, never on the clock (J25).
 */
export function apply(target: Target, op: Op, lsn: Lsn): void {
  switch (op.kind) {
    case opKind.append:
      applyAppend(target, op, lsn);
      return;
    case opKind.create:
      applyCreate(target, op, lsn);
      return;
    case opKind.delete:
    case opKind.expire:
      applyEnd(target, op, lsn);
      return;
    case opKind.touch:
      applyTouch(target, op);
      return;
    case opKind.hello:
      applyHello(target, op, lsn);
      return;
    case opKind.advance:
      applyAdvance(target, op, lsn);
      return;
    case opKind.quarantined:
      target.state.counters.recordsQuarantined += op.records;
      return;
    case opKind.tenant:
      invariant(target.tenant !== null, "a tenant's op is applied by its tenant");
      target.changes.tenant();
      target.tenant.apply(op.code, op.body, lsn);
      return;
  }
}

function applyHello({ state, changes }: Target, op: HelloOp, lsn: Lsn): void {
  changes.outbox(op.buffer);
  const epoch = epochOf(state, op.buffer, op.epoch);
  epoch.helloBoot = Math.max(epoch.helloBoot, op.boot);
  epoch.lsn = lsn;
  const outbox = state.outboxes.get(op.buffer);
  invariant(outbox !== undefined, "an outbox with an epoch is known");
  outbox.epoch = op.epoch;
  outbox.boot = op.boot;
}

function applyAdvance({ state, changes }: Target, op: AdvanceOp, lsn: Lsn): void {
  changes.outbox(op.buffer);
  const epoch = epochOf(state, op.buffer, op.epoch);
  invariant(op.fsn === epoch.fsn + 1, "frames of an outbox epoch are applied without gaps");
  epoch.fsn = op.fsn;
  epoch.frameBoot = Math.max(epoch.frameBoot, op.boot);
  epoch.lsn = lsn;
  state.counters.framesApplied += 1;
  state.counters.recordsDeduplicated += op.deduplicated;
}

function applyCreate({ state, touched, changes }: Target, op: CreateOp, lsn: Lsn): void {
  invariant(!state.byPath.has(op.path), "a path has one living stream");
  invariant(!state.softDeleted.has(op.path), "a path that forks hold is not given away");
  invariant(op.id > state.lastId, "stream ids rise");
  const source = op.fork === null ? null : living(state, op.fork.source);
  invariant(
    source === null || (op.fork?.records ?? 0) <= source.record,
    "a fork has of its source what is there",
  );
  const end = state.ends.get(op.path);
  const stream = streamOf(op, { previousEndedAt: end?.at ?? 0, source }, lsn);
  changes.stream(stream);
  if (source !== null) {
    source.forks += 1;
  }
  state.lastId = op.id;
  state.byPath.set(op.path, stream);
  state.byId.set(op.id, stream);
  if (end !== undefined) {
    state.ends.delete(op.path);
    changes.forgotten(end);
  }
  touched.push(lsn, stream);
}

function applyAppend({ state, store, touched, changes }: Target, op: AppendOp, lsn: Lsn): void {
  const stream = living(state, op.id);
  invariant(!stream.closed, "nothing follows a close");
  changes.stream(stream);
  const { records } = op;
  const time = recordTime(stream, op.time);
  const counters = state.counters;
  let bytes = 0;
  for (let i = 0; i < records.length; i++) {
    bytes += records[i]?.length ?? 0;
  }
  if (records.length > 0) {
    store.append(op.id, ownEnd(stream), records, time);
    stream.record += records.length;
    stream.byte += bytes;
    if (stream.path !== quarantinePath) {
      counters.recordsStored += records.length;
      counters.bytesStored += bytes;
    }
  }
  stream.lastTime = time;
  if (op.producer !== null) {
    applyProducer(state, stream, op.producer, time);
  }
  if (op.streamSeq !== null) {
    stream.streamSeq = op.streamSeq;
  }
  if (op.close) {
    stream.closed = true;
  }
  if (stream.ttlSeconds !== null) {
    moveDeadline(stream, time);
  }
  stream.lsn = lsn;
  touched.push(lsn, stream);
}

/** Where the records end that the store holds of the stream: what it inherits is its sources'. */
function ownEnd({ record, byte, fork }: StreamState): RecordPlace {
  return fork === null
    ? { record, byte }
    : { record: record - fork.records, byte: byte - fork.bytes };
}

function applyProducer(
  state: ShardState,
  stream: StreamState,
  tag: { readonly id: string; readonly epoch: number; readonly seq: number },
  time: number,
): void {
  const producers = (stream.producers ??= new Map());
  const known = producers.get(tag.id);
  if (known !== undefined && !isIdle(known, time)) {
    admitSeq(known, tag, time);
    return;
  }
  if (known === undefined) {
    if (producers.size >= limits.producersPerStreamMax) {
      state.counters.producers -= evictIdle(stream, time);
    }
    state.counters.producers += 1;
  }
  producers.set(tag.id, admitSeq(undefined, tag, time));
}

function evictIdle(stream: StreamState, time: number): number {
  let evicted = 0;
  for (const [id, producer] of stream.producers ?? []) {
    if (isIdle(producer, time)) {
      stream.producers?.delete(id);
      evicted += 1;
    }
  }
  return evicted;
}

function applyEnd({ state, touched, changes }: Target, op: EndOp, lsn: Lsn): void {
  const stream = living(state, op.id);
  changes.stream(stream);
  stream.ended = true;
  stream.lsn = lsn;
  state.endLsn = lsn;
  state.byPath.delete(stream.path);
  state.byId.delete(stream.id);
  state.counters.producers -= stream.producers?.size ?? 0;
  stream.producers = null;
  rememberEnd(state, changes, stream.path, { at: op.time, id: stream.id, lsn });
  if (stream.forks > 0) {
    state.softDeleted.set(stream.path, stream);
    touched.push(lsn, stream);
  } else {
    giveUp({ state, touched, changes }, stream, lsn);
  }
}

function rememberEnd(state: ShardState, changes: Changes, path: string, end: End): void {
  state.ends.set(path, end);
  changes.ended(path, end);
  if (state.ends.size > limits.endsRememberedMax) {
    for (const [oldest, forgotten] of state.ends) {
      state.ends.delete(oldest);
      changes.forgotten(forgotten);
      break;
    }
  }
}

/** Nothing reads `stream` any more, nor the ended streams that it alone was a fork of, up the line. */
function giveUp(
  { state, touched, changes }: Pick<Target, "state" | "touched" | "changes">,
  stream: StreamState,
  lsn: Lsn,
): void {
  let next: StreamState | null = stream;
  while (next !== null) {
    touched.push(lsn, next);
    const source: StreamState | null = next.fork?.source ?? null;
    next = null;
    if (source !== null) {
      changes.stream(source);
      source.forks -= 1;
      if (source.ended && source.forks === 0) {
        state.softDeleted.delete(source.path);
        next = source;
      }
    }
  }
}

function applyTouch({ state, changes }: Target, op: TouchOp): void {
  const stream = living(state, op.id);
  changes.stream(stream);
  moveDeadline(stream, op.time);
}

function moveDeadline(stream: StreamState, time: number): void {
  const deadline = time + (stream.ttlSeconds ?? 0) * 1000;
  stream.writtenDeadline = Math.max(stream.writtenDeadline, deadline);
  stream.deadline = Math.max(stream.deadline, deadline);
}

function living(state: ShardState, id: AppendOp["id"]): StreamState {
  const stream = state.byId.get(id);
  invariant(stream !== undefined, "an op names a living stream");
  return stream;
}

function epochOf(state: ShardState, buffer: string, epoch: string): OutboxEpoch {
  let outbox = state.outboxes.get(buffer);
  if (outbox === undefined) {
    outbox = { epoch, boot: 0, epochs: new Map() };
    state.outboxes.set(buffer, outbox);
  }
  let known = outbox.epochs.get(epoch);
  if (known === undefined) {
    known = { fsn: 0, helloBoot: 0, frameBoot: 0, lsn: toLsn(0) };
    outbox.epochs.set(epoch, known);
  }
  return known;
}
