import type { ErrorCode } from "../errors/mod.ts";

export const frameVersion = 1;

export const messageType = {
  hello: 1,
  frame: 2,
  welcome: 17,
  ack: 18,
  nack: 19,
  results: 20,
  credit: 21,
} as const;
export const frameFlag = { direct: 1, void: 2 } as const;
export const requestFlag = { create: 1, json: 2 } as const;

export interface ProducerTag {
  readonly id: string;
  readonly epoch: number;
  readonly seq: number;
}

/** One producer request on its way to the origin: 1..n records, atomic. */
export interface FrameRequest {
  /** Normalised stream path, without `/v1/stream/`. */
  readonly stream: string;
  /** Bit set of `requestFlag`. */
  readonly flags: number;
  /** The edge's clock when it took the request, ms. */
  readonly acceptedAt: number;
  readonly contentType: string | null;
  readonly producer: ProducerTag | null;
  readonly streamSeq: string | null;
  readonly records: readonly Uint8Array[];
}

/** A frame out of an outbox, or a direct one (`direct`: buffer "", epoch "", boot 0, fsn 0). */
export interface Frame {
  readonly flags: number;
  readonly buffer: string;
  readonly epoch: string;
  readonly boot: number;
  readonly fsn: number;
  /** Why the FSN was given up; only with flag `void`, otherwise "". */
  readonly voidReason: string;
  readonly requests: readonly FrameRequest[];
}

export interface Hello {
  readonly buffer: string;
  readonly epoch: string;
  readonly boot: number;
  readonly highestFsn: number;
}
export interface Welcome {
  readonly journalId: string;
  readonly buffer: string;
  readonly durableFsn: number;
  readonly latestBoot: number;
}
export interface Ack {
  readonly buffer: string;
  readonly epoch: string;
  readonly received: number;
  readonly durable: number;
  readonly replicated: number;
}
export interface Nack {
  readonly buffer: string;
  readonly epoch: string;
  readonly fsn: number;
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly expectedFsn: number;
  readonly message: string;
}
/** The most bytes of frames that an outbox is to have unacknowledged; 0 asks for one frame at a time. */
export interface Credit {
  readonly buffer: string;
  readonly bytes: number;
}
export interface RequestResult {
  readonly status: number;
  readonly code: ErrorCode | null;
  readonly detail: string | null;
  /** Response header fields, names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

export type LinkMessage =
  | { readonly type: "hello"; readonly hello: Hello }
  | { readonly type: "frame"; readonly frame: Frame }
  | { readonly type: "welcome"; readonly welcome: Welcome }
  | { readonly type: "ack"; readonly ack: Ack }
  | { readonly type: "nack"; readonly nack: Nack }
  | { readonly type: "results"; readonly results: readonly RequestResult[] }
  | { readonly type: "credit"; readonly credit: Credit };
