import type { ErrorCode } from "../../shared/errors/mod.ts";
import type { FrameRequest } from "../../shared/frame/mod.ts";
import type { Health } from "./health.ts";

/**
 * The RPC contract between the Worker (`edge/routes`, `edge/batcher`) and the outbox Durable Object. Everything
 * here crosses the boundary by structured clone, so: plain objects, no classes, and no `Uint8Array` is a view of a
 * buffer that holds much else (a view ships its whole backing buffer, once for all views of it in one call).
 *
 * An outbox has two names: the buffer `<region>:<partition>` of `Forebay-Position` and of the frame header, and the
 * Durable Object's id, from the name `buf:<region>:<partition>`.
 */
export interface OutboxRequest {
  /**
   * One producer request. Without a producer it may be larger than a frame: the outbox then lays its records, in
   * order, into consecutive frames of the same transaction. With a producer it must fit one frame, because its seq
   * names it whole (the routes refuse it before; the outbox refuses it again with `frame_too_large`).
   */
  readonly request: FrameRequest;
  /** The client's batch id (F11): the same id again gets the same answer, nothing is stored twice. */
  readonly batchId: string | null;
}

/** Shape of a refusal that crosses RPC: a ForebayError's fields, because classes do not survive the trip. */
export interface OutboxRefusal {
  readonly kind: "refused";
  readonly code: ErrorCode;
  readonly message: string;
  readonly retryAfterSeconds?: number;
  /** Response header fields, names in lower case, e.g. `producer-expected-seq`. */
  readonly headers?: Readonly<Record<string, string>>;
}

export type OutboxAnswer =
  | {
      readonly kind: "accepted";
      /** Where the request lies; of a request laid into several frames, its last part. */
      readonly fsn: number;
      /** The request's place in that frame. */
      readonly index: number;
      /**
       * It was there already. By batch id `fsn` and `index` are the first one's; by producer seq they are the producer's
       * newest request's, which is durable only after all before it. FSN 0 means before the present epoch.
       */
      readonly deduplicated: boolean;
    }
  | OutboxRefusal;

/** One answer per request, in order. `epoch` belongs to every position among them. */
export interface OutboxReply {
  readonly epoch: string;
  readonly answers: readonly OutboxAnswer[];
}

/** What the origin is known to have done with a position. `received` says it has the frame, `durable` that it is safe. */
export type OutboxAckReply =
  | { readonly kind: "state"; readonly received: boolean; readonly durable: boolean }
  | OutboxRefusal;

/** A frame that the origin refused for good; its place was taken by a VOID. */
export interface DeadFrame {
  readonly row: number;
  readonly epoch: string;
  readonly fsn: number;
  readonly records: number;
  /** When it was given up, ms. */
  readonly at: number;
  /** The catalogue's code it was refused with. */
  readonly reason: string;
  readonly bytes: number;
}

export interface DeadLetter extends DeadFrame {
  readonly kind: "dead";
  /** False: its bytes are no frame, and `requests` is empty. */
  readonly readable: boolean;
  readonly requests: readonly FrameRequest[];
}

export interface OutboxStatus {
  /** `<region>:<partition>`. */
  readonly buffer: string;
  readonly epoch: string;
  readonly boot: number;
  /** Highest FSN ever assigned in this epoch; survives trimming. */
  readonly highestFsn: number;
  /** Highest FSN the origin has acknowledged as durable. */
  readonly acked: number;
  /** Frames and bytes kept now. */
  readonly frames: number;
  readonly bytes: number;
  /** Age of the oldest frame not yet acknowledged, ms; 0 when there is none. */
  readonly oldestUnackedMs: number;
  /** Records: accepted = inFrames + acknowledged + dead, at all times (DESIGN, promise 5). */
  readonly ledger: {
    readonly accepted: number;
    readonly deduplicated: number;
    readonly refused: number;
    readonly inFrames: number;
    readonly acknowledged: number;
    readonly dead: number;
  };
  /** Failed drains in a row, and terminal NACKs on the same FSN. */
  readonly attempts: number;
  readonly strikes: number;
  readonly lastError: string | null;
  /** Degraded while the drain is stalled; writes are refused by bytes alone (F7). */
  readonly health: Health;
  readonly link: {
    /** POSTs lost or refused as a whole, and answers that moved nothing. */
    readonly failures: number;
    readonly stalls: number;
    readonly framesAcked: number;
    /** Given up: their records are in `dead`. */
    readonly framesVoided: number;
    /** Since the object was constructed; replayed: sent before in that time. */
    readonly framesSent: number;
    readonly framesReplayed: number;
    /** NACKs by code. */
    readonly nacks: Readonly<Record<string, number>>;
    /** Bytes a second that drain now. */
    readonly bytesPerSecond: number;
  };
  /** Epochs that ended, oldest first, the last 15. `lost`: FSNs acknowledged by an origin that no longer has them. */
  readonly endedEpochs: readonly {
    readonly epoch: string;
    readonly ending: "rewound" | "origin_history_lost";
    readonly lost: { readonly from: number; readonly to: number } | null;
  }[];
  /** How often the object was constructed since its storage was made: it rises when a hibernated outbox wakes. */
  readonly constructions: number;
}

/** The methods of the `Outbox` class that the Worker calls through a stub. */
export interface OutboxRpc {
  /** All requests in one transaction and normally one frame; refused ones leave no trace. */
  append(requests: readonly OutboxRequest[]): Promise<OutboxReply>;
  /**
   * The state of a position (`parsePosition` form, of this outbox). Waits up to `waitMs` for `durable`.
   * Refusals: `not_found` for an unknown epoch, or an FSN never assigned; `frame_given_up`; `origin_history_lost`.
   */
  ack(position: string, waitMs: number): Promise<OutboxAckReply>;
  status(): Promise<OutboxStatus>;
  /** Frames given up, oldest first, at rows above `after`; at most 100. */
  dead(after: number): Promise<readonly DeadFrame[]>;
  /** Refusal: `not_found`. */
  deadLetter(row: number): Promise<DeadLetter | OutboxRefusal>;
  /** Sends one again as a new frame. Refusals: `not_found`, `bad_frame` for bytes that are no frame. */
  replayDead(
    row: number,
  ): Promise<{ readonly kind: "replayed"; readonly fsn: number } | OutboxRefusal>;
  /** Sends what is kept now instead of waiting for its backoff. */
  drain(): Promise<void>;
}
