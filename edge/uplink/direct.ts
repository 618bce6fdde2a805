import { catalogue, ForebayError, type ErrorCode } from "../../shared/errors/mod.ts";
import {
  decodeMessages,
  encodeMessage,
  frameFlag,
  type FrameRequest,
  type LinkMessage,
  type RequestResult,
} from "../../shared/frame/mod.ts";
import { framesContentType, framesPath } from "../../shared/protocol/mod.ts";
import { limits } from "../../shared/limits.ts";
import { type OriginLink, type OriginReach, reason } from "./reach.ts";

/** A flight ends before its waiters give up. */
const answerMsMax = limits.batchWaitMsMax - 1000;

/**
 * Sends requests to the origin as one direct frame (FORMAT.md) and gives each its own result, in order.
 *
 * @throws ForebayError `origin_unreachable` (nothing was sent), `outcome_unknown` (the reply was lost), or the code the
 *   origin refused the whole frame with (nothing stored)
 */
export async function sendDirect(
  reach: OriginReach,
  link: OriginLink,
  requests: readonly FrameRequest[],
): Promise<readonly RequestResult[]> {
  const body = encodeMessage({ type: "frame", frame: { ...directFrame, requests } });
  await reach.ensure(link);
  try {
    const response = await fetch(link.url + framesPath, {
      method: "POST",
      headers: linkHeaders(link),
      body,
      redirect: "manual",
      signal: AbortSignal.timeout(answerMsMax),
    });
    const reply = new Uint8Array(await response.arrayBuffer());
    reach.heard();
    if (response.status !== 200) {
      throw refusalOf(response, reply);
    }
    return resultsOf(reply, requests.length);
  } catch (error) {
    throw error instanceof ForebayError ? error : lostReply(reach, error);
  }
}

const directFrame = {
  flags: frameFlag.direct,
  buffer: "",
  epoch: "",
  boot: 0,
  fsn: 0,
  voidReason: "",
} as const;

function linkHeaders(link: OriginLink): Record<string, string> {
  const headers: Record<string, string> = { "content-type": framesContentType };
  if (link.key !== null) {
    headers["authorization"] = `Bearer ${link.key}`;
  }
  return headers;
}

function lostReply(reach: OriginReach, cause: unknown): ForebayError {
  reach.lost();
  return new ForebayError("outcome_unknown", `the origin's reply was lost (${reason(cause)})`, {
    cause,
  });
}

function resultsOf(reply: Uint8Array, count: number): readonly RequestResult[] {
  for (const message of readable(reply)) {
    if (message.type === "results" && message.results.length === count) {
      return message.results;
    }
    if (message.type === "nack") {
      throw new ForebayError(message.nack.code, message.nack.message);
    }
  }
  throw new ForebayError(
    "outcome_unknown",
    `the origin's reply holds no results for ${count} requests`,
  );
}

function readable(reply: Uint8Array): LinkMessage[] {
  try {
    return decodeMessages(reply);
  } catch (cause) {
    throw new ForebayError(
      "outcome_unknown",
      `the origin's reply cannot be read (${reason(cause)})`,
      { cause },
    );
  }
}

/** What a POST of ours can only be refused with when its bytes were cut or damaged on the way. */
const linkFaults: ReadonlySet<ErrorCode> = new Set(["bad_request", "request_timeout", "bad_frame"]);

/**
 * A whole POST refused. A problem document of ours (RFC 9457 with `code`) speaks for itself: nothing was stored. A refused
 * key, and bytes that did not arrive as they were sent, are faults between edge and origin, not of the client. Anything
 * else is a stranger's answer and proves nothing.
 */
function refusalOf(response: Response, reply: Uint8Array): ForebayError {
  const problem = parseProblem(reply);
  if (problem === null) {
    return new ForebayError(
      "outcome_unknown",
      `the origin's place answered ${response.status} without a reason`,
    );
  }
  if (response.status === 401 || response.status === 403) {
    return new ForebayError(
      "origin_unreachable",
      `the origin refuses this edge (${problem.detail}); nothing was stored`,
    );
  }
  if (linkFaults.has(problem.code)) {
    return new ForebayError(
      "origin_unreachable",
      `the frame did not reach the origin whole (${problem.detail}); nothing was stored`,
    );
  }
  const retryAfter = Number(response.headers.get("retry-after") ?? "");
  return new ForebayError(
    problem.code,
    problem.detail,
    retryAfter > 0 ? { retryAfterSeconds: retryAfter } : {},
  );
}

function parseProblem(
  reply: Uint8Array,
): { readonly code: ErrorCode; readonly detail: string } | null {
  try {
    const { code, detail } = JSON.parse(new TextDecoder().decode(reply)) as {
      code?: unknown;
      detail?: unknown;
    };
    return typeof code === "string" && Object.hasOwn(catalogue, code)
      ? { code: code as ErrorCode, detail: String(detail) }
      : null;
  } catch {
    return null;
  }
}
