/**
 * Subscriptions: who is to be woken by which streams, by webhook or by a wake stream, how far each has come, and the
 * leases and fences in between (Durable Streams, reserved subscription API). State lies in the streams' journal
 * (FORMAT.md).
 */
export { AddressPolicy } from "./addresses.ts";
export { Glob } from "./glob.ts";
export type { Target } from "./ops.ts";
export { createSubscriptions, type SubscriptionsOptions } from "./subscriptions.ts";
export type {
  Answer,
  Definition,
  OwnedSubscriptions,
  PostWebhook,
  Subscriptions,
  SubscriptionStats,
  WakeReport,
} from "./types.ts";
export { createWebhookClient, type Resolve, type WebhookClient } from "./webhook.ts";
