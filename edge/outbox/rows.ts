import { emptyMemory, type SenderMemory } from "../../shared/sender/mod.ts";

/**
 * What the outbox keeps. Frames are counted by *row*: dense from 1, over the outbox's whole life, never reused. The FSN
 * of a frame is its row less the `shift` of the epoch it is sent in, so a new epoch renumbers without touching a row.
 */
export interface FrameRow {
  readonly row: number;
  /** The boot it was accepted in. */
  readonly boot: number;
  /** Records in it. */
  readonly n: number;
  /** When it was accepted, ms. */
  readonly at: number;
  /** The FRAME message, encoded under the epoch of its acceptance. */
  readonly bytes: ArrayBuffer;
}

export interface ProducerRow {
  readonly stream: string;
  readonly id: string;
  readonly epoch: number;
  /** The newest seq accepted, and where it lies. */
  readonly seq: number;
  readonly row: number;
  readonly idx: number;
  readonly at: number;
}

export interface BatchRow {
  readonly stream: string;
  readonly id: string;
  readonly row: number;
  readonly idx: number;
  readonly at: number;
}

export interface DeadRow {
  readonly row: number;
  readonly epoch: string;
  readonly fsn: number;
  readonly n: number;
  readonly at: number;
  readonly reason: string;
  readonly bytes: ArrayBuffer;
}

/** meta `tail`: what appends change, one row written per append. Counts of records unless named otherwise. */
export interface Tail {
  readonly constructions: number;
  readonly boot: number;
  /** Newest row ever; survives trimming (F3). */
  readonly row: number;
  /** Bytes of all frames ever put in. */
  readonly bytesIn: number;
  readonly accepted: number;
  readonly deduplicated: number;
  readonly refused: number;
  /** Rows added to these tables since they were last swept. */
  readonly newProducers: number;
  readonly newBatches: number;
}

/** meta `drain`: what the link changes, one row written per answer of the origin. */
export interface Drain {
  /** What the sender remembers; its FSNs are those of the present epoch. */
  readonly memory: SenderMemory;
  /** Bytes of all frames ever taken out. Invariant: bytesOut ≤ tail.bytesIn. */
  readonly bytesOut: number;
  /** Records of frames the origin has acknowledged, and of frames given up. */
  readonly acknowledged: number;
  readonly dead: number;
  readonly lastError: string | null;
  readonly counts: LinkCounts;
}

/** Counts of the link since the outbox was made (F14). */
export interface LinkCounts {
  /** POSTs without an answer of ours: lost, or refused as a whole. */
  readonly failures: number;
  /** Answers that moved nothing. */
  readonly stalls: number;
  readonly framesAcked: number;
  readonly framesVoided: number;
  /** NACKs by code. */
  readonly nacks: Readonly<Record<string, number>>;
}

/** Why an epoch ended: this storage was set back (F3), or the origin knows nothing of it any more. */
export type Ending = "rewound" | "origin_history_lost";

/** One outbox epoch. meta `lives` holds them all, newest last. */
export interface Life {
  readonly epoch: string;
  /** FSN = row - shift. */
  readonly shift: number;
  /** Rows up to this were encoded under an earlier epoch. shift ≤ encodedFrom. */
  readonly encodedFrom: number;
  /** How it ended; null for the present one. */
  readonly ending: Ending | null;
  /** The rows acknowledged to a history the origin lost: 1 ..= this. 0 without such a loss. */
  readonly lostThrough: number;
}

export const noTail: Tail = {
  constructions: 0,
  boot: 0,
  row: 0,
  bytesIn: 0,
  accepted: 0,
  deduplicated: 0,
  refused: 0,
  newProducers: 0,
  newBatches: 0,
};

export const noDrain: Drain = {
  memory: emptyMemory,
  bytesOut: 0,
  acknowledged: 0,
  dead: 0,
  lastError: null,
  counts: { failures: 0, stalls: 0, framesAcked: 0, framesVoided: 0, nacks: {} },
};
