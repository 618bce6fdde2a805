import { catalogue, type ErrorCode } from "../../shared/errors/mod.ts";
import type { OutboxRefusal } from "./types.ts";

/** A refusal as it crosses RPC; retryable ones without a time say 1 s. */
export function refusal(
  code: ErrorCode,
  message: string,
  extras: Pick<OutboxRefusal, "retryAfterSeconds" | "headers"> = {},
): OutboxRefusal {
  const retry = catalogue[code].retryable ? { retryAfterSeconds: 1 } : {};
  return { kind: "refused", code, message, ...retry, ...extras };
}
