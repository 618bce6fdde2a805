import type { ErrorCode } from "../errors/mod.ts";

/**
 * What the sender must find again after a restart. The owner writes it down whenever a step returns another object
 * than before (`step.state.memory !== state.memory`), in the same transaction as the step's effects.
 */
export interface SenderMemory {
  /** Highest FSN the origin has acknowledged as durable in this outbox epoch; everything up to it is trimmed. */
  readonly acked: number;
  /** The origin's journal that said so; null before the first WELCOME. */
  readonly journalId: string | null;
  /** Failures in a row since the last progress. */
  readonly attempts: number;
  /** Terminal NACKs of one FSN; only an ack at or beyond it clears them. */
  readonly strikes: Strikes | null;
}

export interface Strikes {
  readonly fsn: number;
  readonly count: number;
  readonly sinceMs: number;
}

/**
 * idle: everything is acked; no POST, no alarm. sending: one POST is in flight. streaming: frames are in flight on the
 * link. waiting: frames are kept until the alarm or, without `pushes`, until a link comes up. closed: the end; what is not
 * acked is kept for the next owner. In sending, streaming and (with a time to wait for) waiting an alarm is armed, so that
 * a lost process or a lost wake-up only delays.
 */
export type SenderPhase = "idle" | "sending" | "waiting" | "streaming" | "closed";

/**
 * Invariants: `memory.acked ≤ highest`; `phase` is not "idle" while they differ; `flight` is empty unless streaming, its
 * FSNs are dense from `memory.acked + 1` on, `flightBytes` is their sum.
 */
export interface SenderState {
  readonly phase: SenderPhase;
  readonly memory: SenderMemory;
  /** Highest FSN ever assigned in this outbox epoch. Rows `acked + 1 .. highest` exist, without gaps. */
  readonly highest: number;
  /** The newest boot of the outbox. */
  readonly boot: number;
  /** The boot whose HELLO was answered by WELCOME, 0 for none in this life of the process or link. */
  readonly helloedBoot: number;
  /** The boot of the HELLO that waits for its WELCOME, in the POST or on the link, 0 for none. */
  readonly sentBoot: number;
  /** While waiting: when to send again; infinite until a link comes up. */
  readonly retryAtMs: number;
  /** Whether the sender posts by itself when there is no link. */
  readonly pushes: boolean;
  /** A link that the origin opened is there. */
  readonly linked: boolean;
  /** Frames that went over the link and are not acked, oldest first. */
  readonly flight: readonly FlightFrame[];
  readonly flightBytes: number;
  /** The most bytes the origin wants unacked: `windowBytesMax` until it says less. One frame may always fly. */
  readonly credit: number;
  /** When the link last acked something, or frames began to fly over it. */
  readonly progressAtMs: number;
  /** Closing: the sender ends when all is acked, and at this time in any case. Null: not closing. */
  readonly closeAtMs: number | null;
}

export interface FlightFrame {
  readonly fsn: number;
  /** Of the whole FRAME message. */
  readonly bytes: number;
}

/** What a POST's answer or messages on the link say to this outbox, by `readAnswer`. */
export interface SenderAnswer {
  readonly welcome: {
    readonly journalId: string;
    readonly durableFsn: number;
    readonly latestBoot: number;
  } | null;
  /** The highest `durable` of the ACKs, null without any. */
  readonly durable: number | null;
  readonly nack: {
    readonly fsn: number;
    readonly code: ErrorCode;
    readonly retryable: boolean;
    readonly message: string;
  } | null;
  /** The newest CREDIT, null without any. */
  readonly credit: number | null;
}

export type SenderEvent =
  /** Frames were stored: `highest` is the last one's FSN, `boot` the outbox's present boot. */
  | {
      readonly type: "appended";
      readonly highest: number;
      readonly boot: number;
      readonly nowMs: number;
    }
  /** The alarm went off (and so is no longer armed). */
  | { readonly type: "alarm"; readonly nowMs: number }
  /** The POST was answered 200 with readable messages. `random` is uniform in [0, 1). */
  | {
      readonly type: "answered";
      readonly answer: SenderAnswer;
      /**
       * Lowest FSN kept whose boot is above the WELCOME's `latestBoot`; null when there is none, or no WELCOME. Such a
       * row cannot have been applied, so a durable mark at or above it means that the storage was rewound.
       */
      readonly firstNewerFsn: number | null;
      readonly nowMs: number;
      readonly random: number;
    }
  /** No answer, or half of one: refused connection, reset, time-out, unreadable messages. */
  | {
      readonly type: "lost";
      readonly reason: string;
      readonly nowMs: number;
      readonly random: number;
    }
  /** Another status than 200. `retryAfterMs` is its Retry-After, 0 without. */
  | {
      readonly type: "refused";
      readonly status: number;
      readonly reason: string;
      readonly retryAfterMs: number;
      readonly nowMs: number;
      readonly random: number;
    }
  /** The origin opened a link; the one before, if any, is no more (F5). */
  | { readonly type: "linkUp"; readonly nowMs: number }
  /** The link ended, or its own liveness says that the peer has vanished. */
  | {
      readonly type: "linkDown";
      readonly reason: string;
      readonly nowMs: number;
      readonly random: number;
    }
  /** Messages came over the link; fields as in `answered`. */
  | {
      readonly type: "heard";
      readonly answer: SenderAnswer;
      readonly firstNewerFsn: number | null;
      readonly nowMs: number;
      readonly random: number;
    }
  /** These frames went over the link, in answer to `sendOnLink`: dense, from its `fromFsn` on. */
  | { readonly type: "sent"; readonly frames: readonly FlightFrame[]; readonly nowMs: number }
  /** Nothing more will be appended. The sender ends when all is acked, at the latest at `atMs`. */
  | { readonly type: "close"; readonly atMs: number; readonly nowMs: number };

/** What the owner does after a step, in this order, before it takes the next event. */
export type SenderEffect =
  /**
   * POST: a HELLO if `hello`, then the stored frames from `fromFsn` on, at least one if there is one, up to `bytesMax`.
   * Exactly one of answered, lost, refused follows, within `postTimeoutMs`.
   */
  | {
      readonly type: "send";
      readonly hello: boolean;
      readonly fromFsn: number;
      readonly bytesMax: number;
    }
  /**
   * On the link: a HELLO if `hello`, then the stored frames from `fromFsn` on: at least one, up to `bytesMax` and
   * `framesMax`. The event `sent` follows at once.
   */
  | {
      readonly type: "sendOnLink";
      readonly hello: boolean;
      readonly fromFsn: number;
      readonly bytesMax: number;
      readonly framesMax: number;
    }
  /** End the link; no linkDown follows for it. */
  | { readonly type: "dropLink"; readonly reason: string }
  /** Delete the rows up to `throughFsn`: they are durable at the origin. */
  | { readonly type: "trim"; readonly throughFsn: number }
  /** Move the frame to `dead` and put a VOID of the same FSN, with the code as reason, in its place. */
  | {
      readonly type: "giveUp";
      readonly fsn: number;
      readonly code: ErrorCode;
      readonly message: string;
    }
  /**
   * Delete the rows below `fromFsn`; number the others from 1 in a new random outbox epoch, in order. The highest FSN
   * starts anew with them.
   */
  | { readonly type: "restartEpoch"; readonly fromFsn: number }
  /** The one alarm, in place of an earlier one. */
  | { readonly type: "arm"; readonly atMs: number }
  | { readonly type: "disarm" }
  /** The sender has ended; so many frames are left to the next owner. Callers that wait for an ack are told. */
  | { readonly type: "closed"; readonly unacked: number }
  /** To be counted and logged. */
  | { readonly type: "report"; readonly report: SenderReport };

export type EffectOf<Type extends SenderEffect["type"]> = Extract<
  SenderEffect,
  { readonly type: Type }
>;

export type SenderReport =
  | { readonly kind: "lost"; readonly reason: string; readonly attempts: number }
  | {
      readonly kind: "refused";
      readonly status: number;
      readonly reason: string;
      readonly attempts: number;
    }
  | {
      readonly kind: "nacked";
      readonly fsn: number;
      readonly code: ErrorCode;
      readonly message: string;
      readonly strikes: number;
    }
  | { readonly kind: "stalled"; readonly attempts: number }
  | {
      readonly kind: "gave_up";
      readonly fsn: number;
      readonly code: ErrorCode;
      readonly message: string;
    }
  /** `origin_history_lost`: the origin once acknowledged these FSNs and no longer has them. */
  | {
      readonly kind: "history_lost";
      readonly fromFsn: number;
      readonly toFsn: number;
      readonly journalId: string;
    }
  /** The outbox woke on an older copy of its storage: the origin knows more FSNs than it does. */
  | {
      readonly kind: "rewound";
      readonly durableFsn: number;
      readonly highestFsn: number;
      readonly fromFsn: number;
    };

export interface SenderStep {
  readonly state: SenderState;
  readonly effects: readonly SenderEffect[];
}
