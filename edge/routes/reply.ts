import { catalogue, ForebayError, problemHeaders, problemJson } from "../../shared/errors/mod.ts";
import type { RequestResult } from "../../shared/frame/mod.ts";
import { header, type AckLevel } from "../../shared/protocol/mod.ts";

/** The problem document of whatever was thrown (RFC 9457). What is not of the catalogue is a fault of ours, and logged. */
export function problemReply(thrown: unknown): Response {
  const error = thrown instanceof ForebayError ? thrown : unexpected(thrown);
  return new Response(problemJson(error.code, error.message), {
    status: error.status,
    headers: problemHeaders(error),
  });
}

function unexpected(thrown: unknown): ForebayError {
  console.error("unexpected error", thrown);
  return new ForebayError("internal", "the edge failed to answer; the fault is logged");
}

export function jsonReply(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): Response {
  return new Response(`${JSON.stringify(body)}\n`, {
    status,
    headers: { "content-type": "application/json", "cache-control": "no-store", ...headers },
  });
}

/** An append's own answer out of a direct frame: the protocol's status and fields, or its problem document. */
export function resultReply(result: RequestResult): Response {
  const { status, code, detail, headers } = result;
  if (code !== null) {
    const retryAfter = Number(headers["retry-after"]);
    const extras = retryAfter > 0 ? { headers, retryAfterSeconds: retryAfter } : { headers };
    return problemReply(new ForebayError(code, detail ?? catalogue[code].title, extras));
  }
  return new Response(null, {
    status,
    headers: { [header.ack]: "origin", "cache-control": "no-store", ...headers },
  });
}

/** An append accepted with less than the origin's word. */
export function acceptedReply(ack: AckLevel, position: string | null): Response {
  const headers: Record<string, string> = { [header.ack]: ack, "cache-control": "no-store" };
  if (position !== null) {
    headers[header.position] = position;
  }
  return new Response(null, { status: 202, headers });
}
