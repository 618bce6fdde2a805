import type { ErrorCode } from "../../shared/errors/mod.ts";
import { requestBytes, requestFlag, type FrameRequest } from "../../shared/frame/mod.ts";
import { limits } from "../../shared/limits.ts";
import { header } from "../../shared/protocol/mod.ts";
import type { DrainRate } from "./drainRate.ts";
import { FrameLayout } from "./layout.ts";
import { refusal } from "./refusal.ts";
import type { BatchRow, ProducerRow } from "./rows.ts";
import type { Marks } from "./settings.ts";
import type { Tables } from "./tables.ts";
import type { OutboxAnswer, OutboxRefusal, OutboxRequest } from "./types.ts";

/** What an append is judged by, besides the tables. */
export interface Grounds {
  readonly now: number;
  readonly marks: Marks;
  readonly rate: DrainRate;
  /** Bytes kept now. */
  readonly bytes: number;
  /** The row of the next frame. */
  readonly firstRow: number;
  /** FSN = row - shift. */
  readonly shift: number;
}

/** Records by what became of them. */
export interface Tally {
  accepted: number;
  deduplicated: number;
  refused: number;
}

/**
 * Judges the requests of one append, in order, each by what those before it left behind. Nothing is written before
 * `keep`; refused requests leave no trace but their count.
 */
export class Admission {
  readonly layout: FrameLayout = new FrameLayout();
  readonly tally: Tally = { accepted: 0, deduplicated: 0, refused: 0 };
  readonly #tables: Tables;
  readonly #grounds: Grounds;
  /** What this append changed; null: looked up and not there. */
  readonly #producers = new Map<string, ProducerRow | null>();
  readonly #changed = new Set<string>();
  readonly #batches = new Map<string, BatchRow>();
  /** How many of them are new, by stream. */
  readonly #fresh = new Map<string, number>();

  constructor(tables: Tables, grounds: Grounds) {
    this.#tables = tables;
    this.#grounds = grounds;
  }

  get newBatches(): number {
    return this.#batches.size;
  }

  get newProducers(): number {
    return [...this.#fresh.values()].reduce((sum, count) => sum + count, 0);
  }

  judge({ request, batchId }: OutboxRequest): OutboxAnswer {
    const answer =
      this.#judgeBatch(request, batchId) ??
      this.#judgeProducer(request) ??
      this.#judgeRoom(request) ??
      this.#accept(request, batchId);
    const column =
      answer.kind === "refused" ? "refused" : answer.deduplicated ? "deduplicated" : "accepted";
    this.tally[column] += request.records.length;
    return answer;
  }

  /** Writes the producers and batches: one row each. */
  keep(): void {
    for (const key of this.#changed) {
      const row = this.#producers.get(key);
      if (row !== undefined && row !== null) {
        this.#tables.putProducer(row);
      }
    }
    for (const row of this.#batches.values()) {
      this.#tables.putBatch(row);
    }
  }

  #judgeBatch(request: FrameRequest, batchId: string | null): OutboxAnswer | null {
    if (batchId === null) {
      return null;
    }
    const known =
      this.#batches.get(keyOf(request.stream, batchId)) ??
      this.#tables.batch(request.stream, batchId);
    return known === undefined ? null : this.#there(known.row, known.idx);
  }

  /** FSN order is seq order, because seq = last + 1 here. A producer this outbox does not know starts at 0. */
  #judgeProducer({ stream, producer }: FrameRequest): OutboxAnswer | null {
    if (producer === null) {
      return null;
    }
    const { id, epoch, seq } = producer;
    const known = this.#producer(stream, id);
    if (known === null) {
      return seq === 0 ? this.#judgeNewProducer(stream) : gap(seq, 0);
    }
    if (epoch < known.epoch) {
      const message = `producer epoch ${epoch} is below ${known.epoch}`;
      return refusal("stale_epoch", message, {
        headers: { [header.producerEpoch]: String(known.epoch) },
      });
    }
    if (epoch > known.epoch) {
      const message = `producer epoch ${epoch} starts at seq ${seq} instead of 0`;
      return seq === 0 ? null : refusal("bad_epoch_start", message);
    }
    if (seq <= known.seq) {
      return this.#there(known.row, known.idx);
    }
    return seq === known.seq + 1 ? null : gap(seq, known.seq + 1);
  }

  #judgeNewProducer(stream: string): OutboxAnswer | null {
    const room = limits.producersPerStreamMax - (this.#fresh.get(stream) ?? 0);
    if (this.#tables.producersOf(stream) < room) {
      return null;
    }
    this.#tables.forgetProducers(this.#grounds.now - limits.producerIdleMsMax, stream);
    return this.#tables.producersOf(stream) < room
      ? null
      : refusal(
          "too_many_producers",
          `the stream has ${limits.producersPerStreamMax} producers here, the limit`,
        );
  }

  /** F7, F8: sizes and marks, before anything is consumed. */
  #judgeRoom(request: FrameRequest): OutboxRefusal | null {
    return judgeSize(request) ?? this.#judgeMarks(requestBytes(request));
  }

  #judgeMarks(more: number): OutboxRefusal | null {
    const { bytes, marks, rate, now } = this.#grounds;
    const held = bytes + this.layout.bytes;
    const [code, mark, over]: [ErrorCode, number, number] =
      held + more > marks.hardBytes
        ? ["outbox_full", marks.hardBytes, held + more - marks.hardBytes]
        : ["outbox_slow", marks.softBytes, held - marks.softBytes];
    if (code === "outbox_slow" && held < marks.softBytes) {
      return null;
    }
    const message = `${held} bytes wait for the origin, ${more} more are too many: the mark is ${mark}`;
    return refusal(code, message, {
      retryAfterSeconds: rate.secondsFor(Math.max(over, more), now),
    });
  }

  #accept(request: FrameRequest, batchId: string | null): OutboxAnswer {
    const { now, firstRow, shift } = this.#grounds;
    const { stream, producer } = request;
    const place = this.layout.place(request);
    const row = firstRow + place.frame;
    const idx = place.index;
    if (producer !== null) {
      const key = keyOf(stream, producer.id);
      if (this.#producer(stream, producer.id) === null) {
        this.#fresh.set(stream, (this.#fresh.get(stream) ?? 0) + 1);
      }
      this.#producers.set(key, { stream, ...producer, row, idx, at: now });
      this.#changed.add(key);
    }
    if (batchId !== null) {
      this.#batches.set(keyOf(stream, batchId), { stream, id: batchId, row, idx, at: now });
    }
    return { kind: "accepted", fsn: row - shift, index: idx, deduplicated: false };
  }

  /** It was there already. What lies before the present epoch has FSN 0 in it: before everything. */
  #there(row: number, idx: number): OutboxAnswer {
    const fsn = Math.max(0, row - this.#grounds.shift);
    return { kind: "accepted", fsn, index: idx, deduplicated: true };
  }

  #producer(stream: string, id: string): ProducerRow | null {
    const key = keyOf(stream, id);
    let known = this.#producers.get(key);
    if (known === undefined) {
      known = this.#tables.producer(stream, id) ?? null;
      this.#producers.set(key, known);
    }
    return known;
  }
}

/** A stream path holds no line feed. */
const keyOf = (stream: string, id: string): string => `${stream}\n${id}`;

function judgeSize(request: FrameRequest): OutboxRefusal | null {
  const { records } = request;
  if (records.length === 0 || (records.length > 1 && (request.flags & requestFlag.json) === 0)) {
    const message = `a request of flags ${request.flags} cannot have ${records.length} records`;
    return refusal("internal", message);
  }
  const misfit = FrameLayout.misfit(request);
  if (misfit === null) {
    return null;
  }
  const max = limits.frameBytesMax;
  return misfit.record === null
    ? refusal(
        "frame_too_large",
        `the request takes ${misfit.bytes} bytes of a frame, the limit is ${max}`,
      )
    : refusal(
        "record_too_large",
        `record ${misfit.record} takes ${misfit.bytes} bytes of a frame, the limit is ${max}`,
      );
}

function gap(seq: number, expected: number): OutboxRefusal {
  return refusal("producer_gap", `seq ${seq} came, ${expected} is the next`, {
    headers: {
      [header.producerExpectedSeq]: String(expected),
      [header.producerReceivedSeq]: String(seq),
    },
  });
}
