import { ForebayError } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import type { Clock } from "../../shared/ports/mod.ts";
import type { OutboxAnswer, OutboxReply, OutboxRequest, OutboxRpc } from "../outbox/mod.ts";

/** What the Worker needs of an outbox stub. */
export type OutboxStub = Pick<OutboxRpc, "append">;

/** One request's answer with the epoch its position needs. */
export interface PlacedAnswer {
  readonly epoch: string;
  readonly answer: OutboxAnswer;
}

/** An RPC ends before its waiters give up. */
const answerMsMax = limits.batchWaitMsMax - 1000;

/**
 * One RPC for the whole batch. `open` makes a stub that belongs to the calling request; a broken stub is never used
 * again. F9: an overloaded outbox is not asked twice; after any other failure the requests that carry an identity
 * (batch id or producer) are sent once more, because the outbox then answers what it answered before; the others must
 * hear that their fate is unknown.
 *
 * @throws ForebayError `outbox_unavailable`: nothing was stored
 */
export async function sendToOutbox(
  clock: Clock,
  open: () => OutboxStub,
  requests: readonly OutboxRequest[],
): Promise<readonly PlacedAnswer[]> {
  const until = clock.now() + answerMsMax;
  try {
    return placed(await answered(clock, until, open().append(requests)));
  } catch (error) {
    if (isOverloaded(error)) {
      throw new ForebayError(
        "outbox_unavailable",
        "the outbox has more work than it can take; nothing was stored",
        {
          cause: error,
        },
      );
    }
    const named = requests.filter(isNamed);
    if (named.length === 0 || clock.now() >= until) {
      throw unknownOutcome(error);
    }
    const reply = await answered(clock, until, open().append(named)).catch((again: unknown) => {
      throw unknownOutcome(again);
    });
    return merged(requests, placed(reply), refusal(unknownOutcome(error)));
  }
}

/** The second sending's answers at the places of the requests it was made of. */
function merged(
  requests: readonly OutboxRequest[],
  answers: readonly PlacedAnswer[],
  unnamed: PlacedAnswer,
): PlacedAnswer[] {
  let next = 0;
  return requests.map((request) => (isNamed(request) ? (answers[next++] ?? unnamed) : unnamed));
}

const isNamed = ({ batchId, request }: OutboxRequest): boolean =>
  batchId !== null || request.producer !== null;

function placed(reply: OutboxReply): PlacedAnswer[] {
  return reply.answers.map((answer) => ({ epoch: reply.epoch, answer }));
}

function refusal(error: ForebayError): PlacedAnswer {
  return { epoch: "", answer: { kind: "refused", code: error.code, message: error.message } };
}

function unknownOutcome(cause: unknown): ForebayError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new ForebayError("outcome_unknown", `the outbox did not answer (${why})`, { cause });
}

/** Cloudflare's mark on a stub's error: the object's queue is full, the call was not delivered. */
function isOverloaded(error: unknown): boolean {
  return error instanceof Error && (error as { overloaded?: unknown }).overloaded === true;
}

async function answered<T>(clock: Clock, until: number, answer: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = clock.after(Math.max(until - clock.now(), 0), () => {
    late.reject(new Error(`no answer within ${answerMsMax} ms`));
  });
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    timer.cancel();
  }
}
