import {
  ForebayError,
  problemContentType,
  problemHeaders,
  problemJson,
} from "../../shared/errors/mod.ts";
import { header } from "../../shared/protocol/mod.ts";
import type { Verdict } from "../stream/mod.ts";
import { flat } from "./webHeaders.ts";

/** An answer, before the headers every answer has. */
export interface Reply {
  readonly status: number;
  /** Flat: name, value, name, value …; names in lower case. */
  readonly headers: readonly string[];
  readonly body: Uint8Array<ArrayBuffer> | string | null;
}

export function problemReply(error: ForebayError): Reply {
  const headers = flat(problemHeaders(error));
  return { status: error.status, headers, body: problemJson(error.code, error.message) };
}

/** What the streams decided, as HTTP. `ack` is what "durable" means here (DESIGN, promise 1). */
export function verdictReply(verdict: Verdict, ack: string | null): Reply {
  const headers = [...verdict.headers];
  if (ack !== null) {
    headers.push(header.ack, ack);
  }
  if (verdict.code === null) {
    return { status: verdict.status, headers, body: null };
  }
  const error = new ForebayError(verdict.code, verdict.detail ?? "");
  headers.push("content-type", problemContentType, "cache-control", "no-store");
  if (error.retryAfterSeconds !== undefined && !headers.includes("retry-after")) {
    headers.push("retry-after", String(error.retryAfterSeconds));
  }
  return { status: verdict.status, headers, body: problemJson(error.code, error.message) };
}

export function jsonReply(status: number, value: unknown, headers: readonly string[] = []): Reply {
  return {
    status,
    headers: ["content-type", "application/json", "cache-control", "no-store", ...headers],
    body: JSON.stringify(value),
  };
}

/** The commit that the answer hangs on failed (DESIGN, output gate). */
export function outcomeUnknown(cause: Error): ForebayError {
  const message = `the journal failed before this answer was durable (${cause.message})`;
  return new ForebayError("outcome_unknown", message, { cause });
}
