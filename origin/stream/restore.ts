import { ForebayError, invariant } from "../../shared/errors/mod.ts";
import type { Lsn } from "../../shared/ids/mod.ts";
import type { StateEntry } from "../store/mod.ts";
import { EntryReader } from "./bytes.ts";
import { type ShardState, type StreamState, streamOf } from "./state.ts";
import {
  readEnd,
  readOutbox,
  readShard,
  readStream,
  readTenant,
  type StreamRecord,
  stateKind,
} from "./stateRecord.ts";
import type { Tenant } from "./types.ts";

/**
 * Fills an empty state with what a checkpoint holds; the journal's entries above `checkpoint` are applied to it next.
 *
 * @param entries sorted by kind, then key
 * @param checkpoint no LSN of the state is above it
 * @throws ForebayError `store_corrupt` | `format_unsupported`
 */
export function restore(
  state: ShardState,
  entries: Iterable<StateEntry>,
  tenant: Tenant | null,
  checkpoint: Lsn,
): void {
  const loading = new Loading(state, tenant, checkpoint);
  for (const entry of entries) {
    try {
      loading.take(entry);
    } catch (error) {
      if (error instanceof ForebayError && error.code === "journal_corrupt") {
        const what = `the state of kind ${entry.kind}, key ${entry.key} cannot be read`;
        throw new ForebayError("store_corrupt", `${what}: ${error.message}`, { cause: error });
      }
      throw error;
    }
  }
  loading.finish();
}

class Loading {
  readonly #state: ShardState;
  readonly #tenant: Tenant | null;
  readonly #checkpoint: Lsn;
  /** All streams, the soft-deleted ones too. */
  readonly #streams: Map<number, StreamState> = new Map();
  readonly #ends: (ReturnType<typeof readEnd> & { readonly id: StreamState["id"] })[] = [];

  constructor(state: ShardState, tenant: Tenant | null, checkpoint: Lsn) {
    this.#state = state;
    this.#tenant = tenant;
    this.#checkpoint = checkpoint;
  }

  take({ kind, key, value }: StateEntry): void {
    if (value === null) {
      return;
    }
    const from = new EntryReader(value);
    switch (kind) {
      case stateKind.shard: {
        const { lastId, endLsn, counters } = readShard(from);
        this.#state.lastId = lastId;
        this.#state.endLsn = this.#held(endLsn);
        Object.assign(this.#state.counters, counters);
        return;
      }
      case stateKind.stream:
        this.#stream(readStream(from));
        return;
      case stateKind.end:
        this.#ends.push({ ...readEnd(from), id: key as StreamState["id"] });
        return;
      case stateKind.outbox: {
        const { buffer, outbox } = readOutbox(from);
        for (const epoch of outbox.epochs.values()) {
          epoch.lsn = this.#held(epoch.lsn);
        }
        this.#state.outboxes.set(buffer, outbox);
        return;
      }
      case stateKind.tenant:
        invariant(this.#tenant !== null, "a tenant's state is taken by its tenant");
        for (const { code, body } of readTenant(from)) {
          this.#tenant.apply(code, body, this.#checkpoint);
        }
        return;
      default:
        throw new ForebayError("store_corrupt", `there is state of unknown kind ${kind}`);
    }
  }

  /** What is remembered of ended paths is in the order of their ends. */
  finish(): void {
    for (const { path, at, id, lsn } of this.#ends.toSorted((a, b) => a.lsn - b.lsn)) {
      this.#state.ends.set(path, { at, id, lsn: this.#held(lsn) });
    }
  }

  /** What came from a journal that was replaced has LSNs that this one does not know yet. */
  #held(lsn: Lsn): Lsn {
    return lsn < this.#checkpoint ? lsn : this.#checkpoint;
  }

  #stream({ create, previousEndedAt, createdLsn, changed }: StreamRecord): void {
    const source = create.fork === null ? null : this.#streams.get(create.fork.source);
    if (source === undefined) {
      const what = `${JSON.stringify(create.path)} is a fork of ${create.fork?.source}, which is not there`;
      throw new ForebayError("store_corrupt", what);
    }
    const stream = streamOf(create, { previousEndedAt, source }, this.#held(createdLsn));
    Object.assign(stream, changed, {
      lsn: this.#held(changed.lsn),
      deadline: changed.writtenDeadline,
      durableRecord: changed.record,
      durableByte: changed.byte,
      durableClosed: changed.closed,
    });
    if (source !== null) {
      source.forks += 1;
    }
    this.#streams.set(stream.id, stream);
    if (stream.ended) {
      this.#state.softDeleted.set(stream.path, stream);
    } else {
      this.#state.byPath.set(stream.path, stream);
      this.#state.byId.set(stream.id, stream);
    }
  }
}
