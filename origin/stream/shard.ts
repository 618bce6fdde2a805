import { ForebayError, invariant } from "../../shared/errors/mod.ts";
import type { Lsn } from "../../shared/ids/mod.ts";
import type { Clock } from "../../shared/ports/mod.ts";
import type { Journal } from "../journal/mod.ts";
import type { RecordStore } from "../store/mod.ts";
import { apply, type Target } from "./apply.ts";
import { EntryWriter } from "./bytes.ts";
import { Changes } from "./changes.ts";
import { beginEntry, type EndOp, type Op, opKind, writeOp } from "./entry.ts";
import { ShardState, type StreamState } from "./state.ts";
import { TouchedStreams } from "./touched.ts";
import type { Tenant, TenantChange } from "./types.ts";

/**
 * One shard's state with its journal: where a decision becomes an entry and the entry becomes state, in this
 * order. If the journal refuses the entry nothing has changed.
 */
export class Shard implements Target {
  readonly clock: Clock;
  readonly store: RecordStore;
  readonly state: ShardState = new ShardState();
  readonly touched: TouchedStreams = new TouchedStreams();
  readonly changes: Changes = new Changes();
  readonly #writer: EntryWriter = new EntryWriter();
  #journal: Journal | null = null;
  #tenant: Tenant | null = null;

  constructor(clock: Clock, store: RecordStore) {
    this.clock = clock;
    this.store = store;
  }

  attach(journal: Journal): void {
    invariant(this.#journal === null, "a shard has one journal");
    this.#journal = journal;
  }

  adopt(tenant: Tenant): void {
    invariant(this.#tenant === null, "a shard has one tenant");
    this.#tenant = tenant;
    this.touched.heard = (stream, created) => tenant.onDurable(stream, created);
  }

  get tenant(): Tenant | null {
    return this.#tenant;
  }

  get journal(): Journal {
    invariant(this.#journal !== null, "a shard writes after its journal was opened");
    return this.#journal;
  }

  /** @throws ForebayError of `Journal.append`, nothing changed */
  commit(op: Op): Lsn {
    beginEntry(this.#writer);
    writeOp(this.#writer, op);
    const lsn = this.journal.append(this.#writer.parts());
    apply(this, op, lsn);
    return lsn;
  }

  /** All of `ops` or none of them. */
  commitAll(ops: readonly Op[]): Lsn {
    this.#encode(ops);
    const lsn = this.journal.append(this.#writer.parts());
    for (const op of ops) {
      apply(this, op, lsn);
    }
    return lsn;
  }

  commitTenant(changes: readonly TenantChange[]): Lsn {
    return this.commitAll(changes.map((change) => ({ kind: opKind.tenant, ...change })));
  }

  /** Bytes of the entry that `ops` would make. */
  entryBytes(ops: readonly Op[]): number {
    this.#encode(ops);
    return this.#writer.length;
  }

  #encode(ops: readonly Op[]): void {
    beginEntry(this.#writer);
    for (const op of ops) {
      writeOp(this.#writer, op);
    }
  }

  /** The living stream at `path`. One that is past its deadline ends here: the first answer that depends on it says so. */
  find(path: string, now: number): StreamState | undefined {
    const stream = this.state.byPath.get(path);
    if (stream === undefined || now < stream.deadline) {
      return stream;
    }
    this.end(stream, opKind.expire, now);
    return undefined;
  }

  end(stream: StreamState, kind: EndOp["kind"], now: number): Lsn {
    return this.commit({ kind, id: stream.id, time: now });
  }

  /**
   * Moves a sliding deadline. Written when it moved by more than TTL/8 since it was last written; nobody waits for
   * that, and when it cannot be written the deadline has moved in memory all the same.
   */
  touch(stream: StreamState, now: number): void {
    if (stream.ttlSeconds === null) {
      return;
    }
    const ttlMs = stream.ttlSeconds * 1000;
    stream.deadline = Math.max(stream.deadline, now + ttlMs);
    if (now + ttlMs - stream.writtenDeadline <= ttlMs / 8) {
      return;
    }
    try {
      this.commit({ kind: opKind.touch, id: stream.id, time: now });
    } catch (error) {
      if (!(error instanceof ForebayError)) {
        throw error;
      }
    }
  }

  /** After replay: the sliding deadlines may have moved by up to TTL/8 unwritten. */
  recover(): void {
    for (const stream of this.state.byPath.values()) {
      if (stream.ttlSeconds !== null) {
        stream.deadline = stream.writtenDeadline + (stream.ttlSeconds * 1000) / 8;
      }
    }
  }
}
