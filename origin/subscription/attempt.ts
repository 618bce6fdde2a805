import { invariant } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import type { Clock } from "../../shared/ports/mod.ts";
import { utf8Bytes } from "../../shared/utf8/mod.ts";
import type { Streams } from "../stream/mod.ts";
import { noticeOf } from "./notice.ts";
import { firstPending, type Told } from "./pending.ts";
import type { Subscription, SubscriptionState, Wake } from "./state.ts";
import type { PostWebhook, WebhookAnswer } from "./types.ts";

export interface WebhookAttempt {
  readonly subscription: Subscription;
  readonly wake: Wake;
  /** What this attempt tells. */
  readonly told: readonly Told[];
  readonly abort: AbortController;
}

/** Sends one signed webhook. Never rejects: no answer, or not the whole of it in time, is an Error. */
export async function sendWebhook(
  attempt: WebhookAttempt,
  state: SubscriptionState,
  clock: Clock,
  post: PostWebhook,
): Promise<WebhookAnswer | Error> {
  const { subscription, wake, told, abort } = attempt;
  const { target } = subscription;
  const { keys } = state;
  invariant(keys !== null, "the keys are older than every subscription");
  invariant(target.kind === "webhook", "what is posted has a URL");
  const body = JSON.stringify(noticeOf(subscription, wake, told, keys));
  const signature = keys.signature(body, Math.floor(clock.now() / 1000));
  const timer = clock.after(limits.webhookMsMax, () => {
    abort.abort(new Error(`no whole answer within ${limits.webhookMsMax} ms`));
  });
  try {
    return await post({ url: target.url, body, signature }, abort.signal);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  } finally {
    timer.cancel();
  }
}

/**
 * Writes a wake's event into the wake stream, for the workers that follow it.
 *
 * @returns why the stream does not take it, or null
 * @throws ForebayError of the journal
 */
export function offerWake(
  streams: Streams,
  { subscription, wake }: Pick<WebhookAttempt, "subscription" | "wake">,
  ts: number,
): string | null {
  const { id, target } = subscription;
  invariant(target.kind === "pull-wake", "what is offered has a wake stream");
  const event = {
    type: "wake",
    subscription_id: id,
    stream: firstPending(streams, subscription) ?? "",
    generation: wake.generation,
    ts,
  };
  return streams.append({
    path: target.stream,
    contentType: "application/json",
    body: utf8Bytes(JSON.stringify(event)),
    producer: null,
    streamSeq: null,
    expectedOffset: null,
    close: false,
  }).detail;
}
