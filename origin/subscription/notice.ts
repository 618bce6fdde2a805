import { controlPrefix } from "../../shared/protocol/mod.ts";
import type { Keys } from "./keys.ts";
import { type Told, toldJson, type ToldJson } from "./pending.ts";
import type { Subscription, Wake } from "./state.ts";

/** The body of a webhook. */
export interface Notice {
  readonly subscription_id: string;
  readonly wake_id: string;
  readonly generation: number;
  readonly streams: readonly ToldJson[];
  readonly callback_url: string;
  readonly callback_token: string;
}

export function noticeOf(
  subscription: Subscription,
  wake: Wake,
  told: readonly Told[],
  keys: Keys,
): Notice {
  const { id, number, base } = subscription;
  return {
    subscription_id: id,
    wake_id: wake.id,
    generation: wake.generation,
    streams: told.map(toldJson),
    callback_url: `${base}${controlPrefix}subscriptions/${encodeURIComponent(id)}/callback`,
    callback_token: keys.token(number, wake.generation),
  };
}

export function jwksUrl(base: string): string {
  return `${base}${controlPrefix}jwks.json`;
}
