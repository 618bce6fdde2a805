import { ForebayError } from "../../../shared/errors/mod.ts";
import type { Frame, FrameRequest, ProducerTag } from "../../../shared/frame/mod.ts";
import { frameFlag, requestFlag } from "../../../shared/frame/mod.ts";
import { type Lsn, lsn } from "../../../shared/ids/mod.ts";
import type { Clock, Timer } from "../../../shared/ports/mod.ts";
import type { Journal, JournalStats } from "../../../origin/journal/mod.ts";
import { ResidentRecords } from "../store/harness.ts";
import {
  type AppendRequest,
  type CreateRequest,
  createStreams,
  type GateWaiter,
  type OwnedStreams,
  type ReadBatch,
  type ReadOptions,
  type Verdict,
} from "../../../origin/stream/mod.ts";

/** A clock that stands still until it is moved, and fires what became due then. */
export class TestClock implements Clock {
  #now: number;
  readonly #timers: Set<{ at: number; fire: () => void }> = new Set();

  constructor(now = 1_700_000_000_000) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  after(ms: number, fire: () => void): Timer {
    const timer = { at: this.#now + ms, fire };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  /** Timers that are armed. */
  get armed(): number {
    return this.#timers.size;
  }

  set(now: number): void {
    this.#now = now;
  }

  advance(ms: number): void {
    this.#now += ms;
    for (const timer of [...this.#timers]) {
      if (timer.at <= this.#now) {
        this.#timers.delete(timer);
        timer.fire();
      }
    }
  }
}

/** A journal in memory whose commits happen when the test says so. */
export class TestJournal implements Journal {
  readonly id = "j-test";
  readonly storage = "memory";
  readonly storageReason = "held in a test";
  readonly entries: Uint8Array[] = [];
  durable: Lsn = lsn(0);
  /** What the next appends throw. */
  refusal: ForebayError | null = null;
  owner: { onDurable(durable: Lsn): void; onFailed(error: Error): void } | null = null;

  get reserved(): Lsn {
    return lsn(this.entries.length);
  }

  append(parts: readonly Uint8Array[]): Lsn {
    if (this.refusal !== null) {
      throw this.refusal;
    }
    this.entries.push(Buffer.concat(parts));
    return this.reserved;
  }

  /** Everything up to `to` becomes durable. */
  commit(to: Lsn = this.reserved): void {
    this.durable = to;
    this.owner?.onDurable(to);
  }

  /** The device failed: nothing above the durable entry will ever be confirmed. */
  fail(): void {
    this.refusal = new ForebayError("journal_failed", "the device failed");
    this.owner?.onFailed(this.refusal);
  }

  readonly trimmed = lsn(0);

  trim(): void {}

  read(): never {
    throw new Error("not asked for");
  }

  flush(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  stats(): JournalStats {
    throw new Error("not asked for");
  }
}

/** Streams whose records are all in memory: they never have to load. */
export interface ResidentStreams extends Omit<OwnedStreams, "create" | "read"> {
  create(request: CreateRequest): Verdict;
  read(path: string, offset: string, options: ReadOptions): ReadBatch | Verdict;
}

/** The streams of a store that holds all in memory. */
export const resident = (streams: OwnedStreams): ResidentStreams => streams as ResidentStreams;

export interface Bench {
  readonly clock: TestClock;
  readonly journal: TestJournal;
  readonly store: ResidentRecords;
  readonly streams: ResidentStreams;
}

/** Streams over a fresh journal, or over the given entries. */
export function bench(
  options: { entries?: readonly Uint8Array[]; clock?: TestClock; storeBytesMax?: number } = {},
): Bench {
  const clock = options.clock ?? new TestClock();
  const journal = new TestJournal();
  const store = new ResidentRecords(options.storeBytesMax ?? 64 * 1024 * 1024);
  const streams = resident(createStreams({ clock, store }));
  for (const entry of options.entries ?? []) {
    journal.entries.push(entry);
    streams.replay(journal.reserved, entry);
  }
  journal.durable = journal.reserved;
  journal.owner = streams;
  streams.start(journal);
  return { clock, journal, store, streams };
}

/** What a crash leaves: the durable entries, replayed. */
export function crashed(from: Bench): Bench {
  return bench({ entries: from.journal.entries.slice(0, from.journal.durable), clock: from.clock });
}

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
export const text = (value: Uint8Array): string => new TextDecoder().decode(value);

export function put(path: string, extras: Partial<CreateRequest> = {}): CreateRequest {
  return {
    path,
    contentType: "text/plain",
    fork: null,
    ttlSeconds: null,
    expiresAt: null,
    closed: false,
    body: bytes(""),
    ...extras,
  };
}

export function post(
  path: string,
  body: string,
  extras: Partial<AppendRequest> = {},
): AppendRequest {
  return {
    path,
    contentType: "text/plain",
    body: bytes(body),
    producer: null,
    streamSeq: null,
    expectedOffset: null,
    close: false,
    ...extras,
  };
}

export const tag = (id: string, epoch: number, seq: number): ProducerTag => ({ id, epoch, seq });

/** Status and code of a verdict. */
export const outcome = (verdict: Verdict): string =>
  verdict.code === null ? String(verdict.status) : `${verdict.status} ${verdict.code}`;

export function headersOf(verdict: Verdict): Record<string, string> {
  const headers: Record<string, string> = {};
  for (let i = 0; i < verdict.headers.length; i += 2) {
    headers[verdict.headers[i] ?? ""] = verdict.headers[i + 1] ?? "";
  }
  return headers;
}

export const isRefused = <T extends object>(answer: T | Verdict): answer is Verdict =>
  "status" in answer;

export function readBatch(
  streams: ResidentStreams,
  path: string,
  offset = "-1",
  maxBytes = 1 << 26,
): ReadBatch {
  const batch = streams.read(path, offset, { maxBytes, touch: false });
  if (isRefused(batch)) {
    throw new Error(`read was refused: ${outcome(batch)}`);
  }
  return batch;
}

/** All durable records of a stream as text. */
export const contents = (streams: ResidentStreams, path: string): string[] =>
  readBatch(streams, path).records.map(text);

/** A reply at the gate that notes what became of it. */
export class Reply implements GateWaiter {
  /** "waiting", "sent", or the status and code it failed with. */
  state: string = "waiting";
  readonly #log: Reply[];

  constructor(log: Reply[] = []) {
    this.#log = log;
  }

  release(): void {
    this.state = "sent";
    this.#log.push(this);
  }

  fail(error: Error): void {
    this.state = error instanceof ForebayError ? `${error.status} ${error.code}` : String(error);
    this.#log.push(this);
  }
}

export function request(
  stream: string,
  records: readonly string[],
  extras: Partial<FrameRequest> = {},
): FrameRequest {
  return {
    stream,
    flags: 0,
    acceptedAt: 1_700_000_000_000,
    contentType: "text/plain",
    producer: null,
    streamSeq: null,
    records: records.map(bytes),
    ...extras,
  };
}

/** An ingest request: JSON values already split, into a stream that is made when it is missing. */
export const ingested = (
  stream: string,
  records: readonly string[],
  extras: Partial<FrameRequest> = {},
): FrameRequest =>
  request(stream, records, {
    flags: requestFlag.create | requestFlag.json,
    contentType: "application/json",
    ...extras,
  });

export function outboxFrame(
  fsn: number,
  requests: readonly FrameRequest[],
  extras: Partial<Frame> = {},
): Frame {
  return {
    flags: 0,
    buffer: "eu:0",
    epoch: "e1",
    boot: 1,
    fsn,
    voidReason: "",
    requests,
    ...extras,
  };
}

/** A bench whose outbox `eu:0` has said HELLO: epoch e1, boot 1. */
export function greeted(from: Bench = bench()): Bench {
  from.streams.hello({ buffer: "eu:0", epoch: "e1", boot: 1, highestFsn: 0 });
  return from;
}

export const directFrame = (requests: readonly FrameRequest[]): Frame =>
  outboxFrame(0, requests, { flags: frameFlag.direct, buffer: "", epoch: "", boot: 0 });

/** The quarantine stream's records. */
export const quarantine = ({ streams, journal }: Bench): Record<string, unknown>[] => {
  journal.commit();
  return contents(streams, "_forebay/quarantine").map(
    (json) => JSON.parse(json) as Record<string, unknown>,
  );
};
