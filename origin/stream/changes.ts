import type { StreamId } from "../../shared/ids/mod.ts";
import type { FrozenState, StateEntry } from "../store/mod.ts";
import { EntryWriter } from "./bytes.ts";
import type { End, ShardState, StreamState } from "./state.ts";
import {
  stateKind,
  writeEnd,
  writeOutbox,
  writeShard,
  writeStream,
  writeTenant,
} from "./stateRecord.ts";
import { isGivenUp } from "./touched.ts";
import type { Tenant } from "./types.ts";

/** Streams encoded in one piece: a tenth of a millisecond or so. */
const pieceStreams = 128;

/** A path's end that is remembered, or by null no longer. */
type EndChange = { readonly path: string; readonly end: End } | null;

/**
 * Which keys of the state changed since the last checkpoint. `apply` says so before it changes a stream; what a
 * checkpoint under way still has to write of that stream is encoded then, as it was at the closing.
 *
 * Invariant: `stream.changedIn` is the current interval exactly when the stream is in `#streams`.
 */
export class Changes {
  #interval = 1;
  #streams: Map<StreamId, StreamState> = new Map();
  #ends: Map<StreamId, EndChange> = new Map();
  #outboxes: Set<string> = new Set();
  #tenant = false;
  #frozen: FrozenStreams | null = null;

  /** `stream` is about to change. */
  stream(stream: StreamState): void {
    if (stream.changedIn === this.#interval) {
      return;
    }
    if (stream.changedIn !== 0) {
      this.#frozen?.keep(stream);
    }
    stream.changedIn = this.#interval;
    this.#streams.set(stream.id, stream);
  }

  /** A path's end is remembered from now on. */
  ended(path: string, end: End): void {
    this.#ends.set(end.id, { path, end });
  }

  /** A path's end is no longer remembered. */
  forgotten(end: End): void {
    this.#ends.set(end.id, null);
  }

  outbox(buffer: string): void {
    this.#outboxes.add(buffer);
  }

  tenant(): void {
    this.#tenant = true;
  }

  /** Sets the changed state apart. The one set apart before is finished or given up. */
  freeze(state: ShardState, tenant: Tenant | null): FrozenState {
    const around = {
      before: [encode(stateKind.shard, 0, (to) => writeShard(to, state))],
      after: [...this.#endEntries(), ...this.#outboxEntries(state), ...this.#tenantEntries(tenant)],
    };
    this.#frozen = new FrozenStreams(this.#streams, this.#interval, around);
    this.#interval += 1;
    this.#streams = new Map();
    this.#ends = new Map();
    this.#outboxes = new Set();
    this.#tenant = false;
    return this.#frozen;
  }

  #endEntries(): StateEntry[] {
    return [...this.#ends]
      .toSorted(([a], [b]) => a - b)
      .map(([id, change]) =>
        change === null
          ? { kind: stateKind.end, key: id, value: null }
          : encode(stateKind.end, id, (to) => writeEnd(to, change.path, change.end)),
      );
  }

  /** Outboxes are numbered in the order in which they came; none ever leaves. */
  #outboxEntries({ outboxes }: ShardState): StateEntry[] {
    return [...outboxes].flatMap(([buffer, outbox], n) =>
      this.#outboxes.has(buffer)
        ? [encode(stateKind.outbox, n, (to) => writeOutbox(to, buffer, outbox))]
        : [],
    );
  }

  #tenantEntries(tenant: Tenant | null): StateEntry[] {
    return this.#tenant && tenant !== null
      ? [encode(stateKind.tenant, 0, (to) => writeTenant(to, tenant.state()))]
      : [];
  }
}

/** The streams that changed in one interval, as they were at its end; other entries before and behind them. */
class FrozenStreams implements FrozenState {
  readonly #streams: Map<StreamId, StreamState>;
  readonly #interval: number;
  /** Streams that changed after the closing, encoded before they did. */
  readonly #kept: Map<StreamId, StateEntry> = new Map();
  readonly #pieces: Generator<readonly StateEntry[]>;

  constructor(
    streams: Map<StreamId, StreamState>,
    interval: number,
    around: { readonly before: readonly StateEntry[]; readonly after: readonly StateEntry[] },
  ) {
    this.#streams = streams;
    this.#interval = interval;
    this.#pieces = this.#walk(around.before, around.after);
  }

  next(): readonly StateEntry[] | null {
    const { value } = this.#pieces.next();
    return value ?? null;
  }

  /** `stream` is about to change for the first time since some closing. */
  keep(stream: StreamState): void {
    if (stream.changedIn === this.#interval) {
      this.#kept.set(stream.id, entryOf(stream));
    }
  }

  *#walk(
    before: readonly StateEntry[],
    after: readonly StateEntry[],
  ): Generator<readonly StateEntry[]> {
    yield before;
    const ids = Float64Array.from(this.#streams.keys()).sort();
    for (let from = 0; from < ids.length; from += pieceStreams) {
      yield this.#piece(ids.subarray(from, from + pieceStreams));
    }
    yield after;
  }

  #piece(ids: Float64Array): StateEntry[] {
    const entries: StateEntry[] = [];
    for (const id of ids) {
      const stream = this.#streams.get(id as StreamId);
      const kept = this.#kept.get(id as StreamId);
      if (kept !== undefined) {
        entries.push(kept);
      } else if (stream !== undefined) {
        entries.push(entryOf(stream));
        // Written: from here on it may change without being kept.
        stream.changedIn = 0;
      }
    }
    return entries;
  }
}

function entryOf(stream: StreamState): StateEntry {
  return isGivenUp(stream)
    ? { kind: stateKind.stream, key: stream.id, value: null }
    : encode(stateKind.stream, stream.id, (to) => writeStream(to, stream));
}

const writer = new EntryWriter();

function encode(kind: number, key: number, write: (to: EntryWriter) => void): StateEntry {
  writer.begin();
  write(writer);
  return { kind, key, value: Buffer.concat(writer.parts()) };
}
