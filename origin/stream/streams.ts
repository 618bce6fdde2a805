import { ForebayError } from "../../shared/errors/mod.ts";
import type { Frame, Hello, RequestResult, Welcome } from "../../shared/frame/mod.ts";
import type { Lsn } from "../../shared/ids/mod.ts";
import type { Clock } from "../../shared/ports/mod.ts";
import type { Journal } from "../journal/mod.ts";
import type { FrozenState, RecordStore, StateEntry } from "../store/mod.ts";
import { apply } from "./apply.ts";
import { unlessCold } from "./cold.ts";
import { create } from "./creation.ts";
import { decodeEntry } from "./entry.ts";
import { Followers } from "./followers.ts";
import { applyDirect, applyFrame, type FrameOutcome } from "./frames.ts";
import { OutputGate } from "./gate.ts";
import { hello } from "./outbox.ts";
import { list, meta, read } from "./reads.ts";
import { restore } from "./restore.ts";
import { Shard } from "./shard.ts";
import type { StreamState } from "./state.ts";
import type * as contract from "./types.ts";
import { remove, write } from "./writes.ts";

export interface StreamsOptions {
  readonly clock: Clock;
  readonly store: RecordStore;
}

/** The streams together with what their journal calls. */
export interface OwnedStreams extends contract.Streams {
  /**
   * The state at the checkpoint, before the first replay.
   *
   * @throws ForebayError `store_corrupt` | `format_unsupported`
   */
  restore(entries: Iterable<StateEntry>, checkpoint: Lsn): void;
  /** Sets apart what changed since the last call, for a checkpoint. */
  freeze(): FrozenState;
  /**
   * One recovered entry. All of them come before `start`.
   *
   * @throws ForebayError `journal_corrupt` | `format_unsupported`
   */
  replay(lsn: Lsn, bytes: Uint8Array): void;
  /** After replay: from here on changes are written to `journal`. */
  start(journal: Journal): void;
  onDurable(durable: Lsn): void;
  onFailed(error: Error): void;
  /** Before `restore` and the first replay. */
  adopt(tenant: contract.Tenant): void;
  /** Lets go of the deadline timer. */
  close(): void;
}

/** The streams of one shard, empty until their journal is replayed into them. */
export function createStreams(options: StreamsOptions): OwnedStreams {
  return new ShardStreams(options);
}

const noBytes = new Uint8Array(0);

class ShardStreams implements OwnedStreams {
  readonly #shard: Shard;
  readonly #gate: OutputGate = new OutputGate();
  readonly #followers: Followers;
  #framesReplayed = 0;

  constructor({ clock, store }: StreamsOptions) {
    this.#shard = new Shard(clock, store);
    this.#followers = new Followers(this.#shard);
  }

  create(request: contract.CreateRequest): contract.Verdict | contract.Loading {
    return unlessCold(() => create(this.#shard, request));
  }

  append(request: contract.AppendRequest): contract.Verdict {
    return write(this.#shard, {
      path: request.path,
      contentType: request.contentType,
      body: request.body,
      split: null,
      checked: false,
      producer: request.producer,
      streamSeq: request.streamSeq,
      expectedOffset: request.expectedOffset,
      close: request.close,
      create: false,
    });
  }

  ingest(request: contract.IngestRequest): contract.Verdict {
    return write(this.#shard, {
      path: request.path,
      contentType: request.contentType,
      body: noBytes,
      split: request.records,
      checked: true,
      producer: request.producer,
      streamSeq: null,
      expectedOffset: null,
      close: false,
      create: request.create,
    });
  }

  remove(path: string): contract.Verdict {
    return remove(this.#shard, path);
  }

  meta(path: string): contract.StreamMeta | contract.Verdict {
    return meta(this.#shard, path);
  }

  read(
    path: string,
    offset: string,
    options: contract.ReadOptions,
  ): contract.ReadBatch | contract.Verdict | contract.Loading {
    return unlessCold(() => read(this.#shard, path, offset, options));
  }

  list(prefix: string, after: string, limit: number): contract.ListedStream[] {
    return list(this.#shard, prefix, after, limit);
  }

  follow(path: string, follower: contract.Follower): void {
    this.#followers.follow(path, follower);
  }

  unfollow(_path: string, follower: contract.Follower): void {
    this.#followers.unfollow(follower);
  }

  life(path: string): contract.StreamLife | undefined {
    const stream = this.#shard.state.byPath.get(path);
    const lives = stream !== undefined && this.#shard.clock.now() < stream.deadline;
    return lives ? stream : undefined;
  }

  lives(): Iterable<contract.StreamLife> {
    return this.#shard.state.byPath.values();
  }

  commitTenant(ops: readonly contract.TenantChange[]): Lsn {
    return this.#shard.commitTenant(ops);
  }

  adopt(tenant: contract.Tenant): void {
    this.#shard.adopt(tenant);
  }

  hold(lsn: Lsn, waiter: contract.GateWaiter): void {
    this.#gate.hold(lsn, waiter);
  }

  hello(from: Hello): { readonly welcome: Welcome; readonly lsn: Lsn } {
    return hello(this.#shard, from);
  }

  applyDirect(frame: Frame): { readonly results: readonly RequestResult[]; readonly lsn: Lsn } {
    return applyDirect(this.#shard, frame);
  }

  applyFrame(frame: Frame): FrameOutcome {
    const outcome = applyFrame(this.#shard, frame);
    this.#framesReplayed += outcome.kind === "replayed" ? 1 : 0;
    return outcome;
  }

  stats(): contract.StreamsStats {
    const { byPath, counters } = this.#shard.state;
    return {
      streams: byPath.size,
      ...counters,
      framesReplayed: this.#framesReplayed,
      waiting: this.#gate.waiting,
      followers: this.#followers.size,
    };
  }

  restore(entries: Iterable<StateEntry>, checkpoint: Lsn): void {
    restore(this.#shard.state, entries, this.#shard.tenant, checkpoint);
    this.onDurable(checkpoint);
  }

  freeze(): FrozenState {
    return this.#shard.changes.freeze(this.#shard.state, this.#shard.tenant);
  }

  replay(lsn: Lsn, bytes: Uint8Array): void {
    for (const op of decodeEntry(bytes)) {
      apply(this.#shard, op, lsn);
    }
    this.onDurable(lsn);
  }

  start(journal: Journal): void {
    this.#shard.attach(journal);
    this.#shard.recover();
    this.onDurable(journal.durable);
  }

  /** Readers see first what is durable, then replies leave, then followers come to read. */
  onDurable(durable: Lsn): void {
    const followed = this.#shard.touched.advance(durable, this.#onGivenUp);
    this.#gate.advance(durable);
    this.#followers.tell(followed);
    this.#shard.tenant?.onAdvanced();
  }

  readonly #onGivenUp = (stream: StreamState): void => this.#shard.store.drop(stream.id);

  onFailed(error: Error): void {
    const message = `the journal failed, what it did not confirm may be stored or not: ${error.message}`;
    this.#gate.fail(new ForebayError("outcome_unknown", message, { cause: error }));
  }

  close(): void {
    this.#followers.close();
  }
}
