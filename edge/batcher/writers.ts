import { ForebayError } from "../../shared/errors/mod.ts";
import { requestBytes, type FrameRequest, type RequestResult } from "../../shared/frame/mod.ts";
import { formatPosition } from "../../shared/ids/mod.ts";
import { limits } from "../../shared/limits.ts";
import type { Clock } from "../../shared/ports/mod.ts";
import { type OriginReach, sendDirect, type OriginLink } from "../uplink/mod.ts";
import type { OutboxRequest } from "../outbox/mod.ts";
import { PendingBudget } from "./budget.ts";
import { Lane, type LaneStats, type Turn } from "./lane.ts";
import { sendToOutbox, type OutboxStub, type PlacedAnswer } from "./outboxTarget.ts";

/** One outbox as one request sees it. */
export interface OutboxPlace {
  /** `<region>:<partition>`. */
  readonly buffer: string;
  /** Makes a stub that belongs to the calling request. */
  open(): OutboxStub;
}

export interface Buffered {
  /** `Forebay-Position`. */
  readonly position: string;
  readonly deduplicated: boolean;
}

export interface WritersStats {
  readonly pendingBytes: number;
  readonly lanes: Readonly<Record<string, LaneStats>>;
}

type WaitUntil = Turn<unknown, unknown>["waitUntil"];

/** All writes of one isolate: a lane to the origin and one to each outbox, under one budget of pending bytes. */
export class Writers {
  readonly #clock: Clock;
  readonly #budget = new PendingBudget(limits.pendingBytesMax);
  readonly #reach: OriginReach;
  readonly #origin: Lane<FrameRequest, RequestResult>;
  readonly #outboxes = new Map<string, Lane<OutboxRequest, PlacedAnswer>>();

  constructor(clock: Clock, reach: OriginReach) {
    this.#clock = clock;
    this.#reach = reach;
    this.#origin = new Lane(clock, this.#budget);
  }

  /**
   * `ack=origin`: the request's own result, durable at the origin when it is a success.
   *
   * @throws ForebayError what `sendDirect` throws, `edge_overloaded`
   */
  appendAtOrigin(
    request: FrameRequest,
    link: OriginLink,
    waitUntil: WaitUntil,
  ): Promise<RequestResult> {
    const weight = { bytes: requestBytes(request), records: request.records.length };
    return this.#origin.submit(request, weight, {
      send: (requests) => sendDirect(this.#reach, link, requests),
      waitUntil,
    });
  }

  /**
   * `ack=edge`: durable in the outbox.
   *
   * @throws ForebayError the outbox's refusal, `outbox_unavailable`, `outcome_unknown`, `edge_overloaded`
   */
  async appendAtOutbox(
    request: OutboxRequest,
    place: OutboxPlace,
    waitUntil: WaitUntil,
  ): Promise<Buffered> {
    const weight = {
      bytes: requestBytes(request.request) + (request.batchId?.length ?? 0),
      records: request.request.records.length,
    };
    const { epoch, answer } = await this.#outboxLane(place.buffer).submit(request, weight, {
      send: (requests) => sendToOutbox(this.#clock, () => place.open(), requests),
      waitUntil,
    });
    if (answer.kind === "refused") {
      throw new ForebayError(answer.code, answer.message, answer);
    }
    const { fsn, index, deduplicated } = answer;
    return { position: formatPosition({ buffer: place.buffer, epoch, fsn, index }), deduplicated };
  }

  stats(): WritersStats {
    const lanes: Record<string, LaneStats> = { origin: this.#origin.stats() };
    for (const [buffer, lane] of this.#outboxes) {
      lanes[buffer] = lane.stats();
    }
    return { pendingBytes: this.#budget.heldBytes, lanes };
  }

  #outboxLane(buffer: string): Lane<OutboxRequest, PlacedAnswer> {
    let lane = this.#outboxes.get(buffer);
    if (lane === undefined) {
      lane = new Lane(this.#clock, this.#budget);
      this.#outboxes.set(buffer, lane);
    }
    return lane;
  }
}
