import type { ErrorCode } from "../errors/mod.ts";
import type { AckLevel } from "../protocol/mod.ts";

/** A record that can be stored. `index` counts the request's records from 0, refused ones too. */
export interface Accepted {
  readonly index: number;
  /** A view of the request's body. */
  readonly bytes: Uint8Array;
}

export interface Refusal {
  readonly index: number;
  readonly code: ErrorCode;
  readonly message: string;
}

/** A body taken apart: `received` = records + refused. */
export interface Parsed {
  readonly records: readonly Accepted[];
  readonly refused: readonly Refusal[];
  readonly received: number;
}

/** What an ingest request is answered (I2): received = accepted + refused + deduplicated. */
export interface IngestAnswer {
  readonly received: number;
  readonly accepted: number;
  readonly refused: readonly Refusal[];
  readonly deduplicated: number;
  /** What the acknowledgement means (DESIGN, promise 1). */
  readonly ack: AckLevel | "memory";
  /** `Forebay-Position`, with ack=edge. */
  readonly position?: string;
  /** The stream's tail behind the records, with ack=origin. */
  readonly nextOffset?: string;
}

/** The answer's JSON text. */
export function ingestAnswerJson(answer: IngestAnswer): string {
  const { received, accepted, refused, deduplicated, ack, position, nextOffset } = answer;
  return JSON.stringify({ received, accepted, refused, deduplicated, ack, position, nextOffset });
}

/**
 * The answer's status: 400 when every record was refused, else 200 for what is durable at the origin and 202 for what
 * is on its way there.
 */
export function ingestStatus(answer: IngestAnswer): 200 | 202 | 400 {
  if (answer.received > 0 && answer.refused.length === answer.received) {
    return 400;
  }
  return answer.ack === "origin" || answer.ack === "memory" ? 200 : 202;
}
