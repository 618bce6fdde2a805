import { ForebayError, invariant } from "../../shared/errors/mod.ts";
import type { StreamId } from "../../shared/ids/mod.ts";
import { StreamRecords } from "./streamRecords.ts";
import type { RecordRange, RecordStore } from "./types.ts";

/** All records in memory, rebuilt from the journal at start. FORMAT.md says how they lie. */
export class ResidentStore implements RecordStore {
  readonly bytesMax: number;
  #bytesHeld = 0;
  readonly #streams: Map<StreamId, StreamRecords> = new Map();

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  get bytesHeld(): number {
    return this.#bytesHeld;
  }

  /** Rounding up to whole chunks can pass the limit by less than one chunk; the next call then refuses. */
  admit(bytes: number): void {
    if (this.#bytesHeld + bytes > this.bytesMax) {
      throw new ForebayError(
        "store_full",
        `${bytes} bytes do not fit: the store holds ${this.#bytesHeld} of at most ${this.bytesMax} bytes`,
      );
    }
  }

  append(stream: StreamId, records: readonly Uint8Array[]): void {
    invariant(records.length > 0, "an append brings a record");
    let held = this.#streams.get(stream);
    let before = 0;
    if (held === undefined) {
      held = new StreamRecords();
      this.#streams.set(stream, held);
    } else {
      before = held.bytesHeld;
    }
    for (let i = 0; i < records.length; i++) {
      const record = records[i];
      if (record !== undefined) {
        held.append(record);
      }
    }
    this.#bytesHeld += held.bytesHeld - before;
  }

  count(stream: StreamId): number {
    return this.#streams.get(stream)?.count ?? 0;
  }

  position(stream: StreamId, record: number): number {
    return this.#streams.get(stream)?.position(record) ?? 0;
  }

  read(stream: StreamId, range: RecordRange): Uint8Array[] {
    return this.#streams.get(stream)?.read(range.from, range.to, range.maxBytes) ?? [];
  }

  drop(stream: StreamId): void {
    const held = this.#streams.get(stream);
    if (held !== undefined) {
      this.#bytesHeld -= held.bytesHeld;
      this.#streams.delete(stream);
    }
  }
}
