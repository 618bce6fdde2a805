import { ForebayError } from "../../shared/errors/mod.ts";
import { EntryReader, EntryWriter, type TenantChange } from "../stream/mod.ts";

/*
 * The changes of the subscriptions' state and their bytes. FORMAT.md is the layout's authority.
 */

export const opCode = {
  keys: 32,
  subscribe: 33,
  unsubscribe: 34,
  link: 35,
  unlink: 36,
  wake: 37,
  claim: 38,
  ack: 39,
  settle: 40,
  generation: 41,
  numbered: 42,
} as const;

export interface KeysOp {
  readonly code: 32;
  readonly time: number;
  /** 32 bytes: the private key of the signatures (RFC 8032). */
  readonly signingSeed: Uint8Array;
  /** 32 bytes: the HMAC key of the tokens. */
  readonly tokenKey: Uint8Array;
}

/** Where a subscription's wakes go. */
export type Target =
  | { readonly kind: "webhook"; readonly url: string }
  | { readonly kind: "pull-wake"; readonly stream: string };

export interface SubscribeOp {
  readonly code: 33;
  /** Rises, is never reused. */
  readonly number: number;
  readonly time: number;
  readonly id: string;
  readonly target: Target;
  readonly pattern: string | null;
  readonly description: string | null;
  readonly leaseMs: number;
  /** What URLs in answers and webhooks begin with. */
  readonly base: string;
  /** Digest of the configuration as it was asked for: what a repeated PUT is compared with. */
  readonly digest: string;
}

export interface UnsubscribeOp {
  readonly code: 34;
  readonly number: number;
}

/** The subscription follows a path, or does so in another way than before. */
export interface LinkOp {
  readonly code: 35;
  readonly number: number;
  readonly path: string;
  readonly explicit: boolean;
  readonly glob: boolean;
  /** The life of the path that the cursor is in; 0 while there is none. */
  readonly streamId: number;
  /** What was acknowledged; null before the first. */
  readonly acked: Position | null;
}

export interface Position {
  readonly record: number;
  readonly byte: number;
}

export interface UnlinkOp {
  readonly code: 36;
  readonly number: number;
  readonly path: string;
}

export interface WakeOp {
  readonly code: 37;
  readonly number: number;
  readonly generation: number;
  readonly wakeId: string;
}

export interface ClaimOp {
  readonly code: 38;
  readonly number: number;
  readonly holder: string;
}

export interface AckOp {
  readonly code: 39;
  readonly number: number;
  readonly acks: readonly (Position & { readonly path: string })[];
}

/** The wake is over: done, released, or its lease has run out. */
export interface SettleOp {
  readonly code: 40;
  readonly number: number;
}

/** At a checkpoint only: as many wakes were opened before. */
export interface GenerationOp {
  readonly code: 41;
  readonly number: number;
  readonly generation: number;
}

/** At a checkpoint only: numbers up to this one were given. */
export interface NumberedOp {
  readonly code: 42;
  readonly number: number;
}

export type Op =
  | KeysOp
  | SubscribeOp
  | UnsubscribeOp
  | LinkOp
  | UnlinkOp
  | WakeOp
  | ClaimOp
  | AckOp
  | SettleOp
  | GenerationOp
  | NumberedOp;

const subscribeFlag = { pull: 1, pattern: 2, description: 4 } as const;
const linkFlag = { explicit: 1, glob: 2, acked: 4 } as const;
const keyBytes = 32;

/** Reused: what it wrote is copied before the next op. */
const writer = new EntryWriter();

export function changeOf(op: Op): TenantChange {
  writer.begin();
  writeBody(writer, op);
  return { code: op.code, body: Buffer.concat(writer.parts()) };
}

function writeBody(to: EntryWriter, op: Op): void {
  if (op.code === opCode.keys) {
    to.time(op.time);
    to.bytes(op.signingSeed);
    to.bytes(op.tokenKey);
    return;
  }
  to.uint(op.number);
  switch (op.code) {
    case opCode.subscribe:
      writeSubscribe(to, op);
      return;
    case opCode.link:
      writeLink(to, op);
      return;
    case opCode.unlink:
      to.text(op.path);
      return;
    case opCode.wake:
      to.uint(op.generation);
      to.text(op.wakeId);
      return;
    case opCode.claim:
      to.text(op.holder);
      return;
    case opCode.ack:
      to.uint(op.acks.length);
      for (const { path, record, byte } of op.acks) {
        to.text(path);
        to.uint(record);
        to.uint(byte);
      }
      return;
    case opCode.generation:
      to.uint(op.generation);
      return;
    case opCode.unsubscribe:
    case opCode.settle:
    case opCode.numbered:
      return;
  }
}

function writeSubscribe(to: EntryWriter, op: SubscribeOp): void {
  to.time(op.time);
  to.u8(
    (op.target.kind === "pull-wake" ? subscribeFlag.pull : 0) |
      (op.pattern === null ? 0 : subscribeFlag.pattern) |
      (op.description === null ? 0 : subscribeFlag.description),
  );
  to.text(op.id);
  to.text(op.target.kind === "webhook" ? op.target.url : op.target.stream);
  to.uint(op.leaseMs);
  to.text(op.base);
  to.text(op.digest);
  if (op.pattern !== null) {
    to.text(op.pattern);
  }
  if (op.description !== null) {
    to.text(op.description);
  }
}

function writeLink(to: EntryWriter, op: LinkOp): void {
  to.u8(
    (op.explicit ? linkFlag.explicit : 0) |
      (op.glob ? linkFlag.glob : 0) |
      (op.acked === null ? 0 : linkFlag.acked),
  );
  to.text(op.path);
  to.uint(op.streamId);
  if (op.acked !== null) {
    to.uint(op.acked.record);
    to.uint(op.acked.byte);
  }
}

/** @throws ForebayError `journal_corrupt` */
export function opOf(code: number, body: Uint8Array): Op {
  const from = new EntryReader(body);
  const op = readBody(from, code);
  if (!from.done) {
    throw corrupt(`has ${body.length} bytes, more than an op of kind ${code} needs`);
  }
  return op;
}

function readBody(from: EntryReader, code: number): Op {
  if (code === opCode.keys) {
    const time = from.time();
    return { code, time, signingSeed: copied(from), tokenKey: copied(from) };
  }
  const number = from.uint();
  switch (code) {
    case opCode.subscribe:
      return readSubscribe(from, number);
    case opCode.link:
      return readLink(from, number);
    case opCode.unlink:
      return { code, number, path: from.text() };
    case opCode.wake:
      return { code, number, generation: from.uint(), wakeId: from.text() };
    case opCode.claim:
      return { code, number, holder: from.text() };
    case opCode.ack: {
      const acks: AckOp["acks"][number][] = [];
      for (let left = from.count(); left > 0; left--) {
        acks.push({ path: from.text(), record: from.uint(), byte: from.uint() });
      }
      return { code, number, acks };
    }
    case opCode.generation:
      return { code, number, generation: from.uint() };
    case opCode.unsubscribe:
    case opCode.settle:
    case opCode.numbered:
      return { code, number };
    default:
      throw corrupt(`is of the unknown kind ${code}`);
  }
}

function readSubscribe(from: EntryReader, number: number): SubscribeOp {
  const time = from.time();
  const flags = from.u8();
  const id = from.text();
  const target = from.text();
  return {
    code: opCode.subscribe,
    number,
    time,
    id,
    target:
      (flags & subscribeFlag.pull) === 0
        ? { kind: "webhook", url: target }
        : { kind: "pull-wake", stream: target },
    leaseMs: from.uint(),
    base: from.text(),
    digest: from.text(),
    pattern: (flags & subscribeFlag.pattern) === 0 ? null : from.text(),
    description: (flags & subscribeFlag.description) === 0 ? null : from.text(),
  };
}

function readLink(from: EntryReader, number: number): LinkOp {
  const flags = from.u8();
  return {
    code: opCode.link,
    number,
    explicit: (flags & linkFlag.explicit) !== 0,
    glob: (flags & linkFlag.glob) !== 0,
    path: from.text(),
    streamId: from.uint(),
    acked: (flags & linkFlag.acked) === 0 ? null : { record: from.uint(), byte: from.uint() },
  };
}

/** Bytes of an entry are gone when its replay is over. */
function copied(from: EntryReader): Uint8Array {
  return Uint8Array.from(from.bytes(keyBytes));
}

function corrupt(what: string): ForebayError {
  return new ForebayError("journal_corrupt", `an op of the subscriptions ${what}`);
}
