import type { ErrorCode } from "../../shared/errors/mod.ts";
import type { Lsn } from "../../shared/ids/mod.ts";
import type { Loading } from "../stream/mod.ts";
import type { Glob } from "./glob.ts";
import type { PublicJwk } from "./keys.ts";
import type { Target } from "./ops.ts";

/** What `PUT` asks for. Paths are normalised, the target is checked. */
export interface Definition {
  readonly target: Target;
  readonly glob: Glob | null;
  /** Streams named one by one. */
  readonly streams: readonly string[];
  readonly leaseMs: number;
  readonly description: string | null;
}

/** Which wake a callback, an ack or a release is about, and what it acknowledges. */
export interface WakeReport {
  readonly token: string;
  readonly wakeId: string;
  readonly generation: number;
  readonly acks: readonly { readonly path: string; readonly offset: string }[];
  readonly done: boolean;
}

/** The answer to one request; to be sent when `lsn` is durable (DESIGN, output gate). */
export type Answer =
  | {
      readonly kind: "done";
      readonly status: 200 | 201 | 204;
      readonly body: object | null;
      readonly lsn: Lsn;
    }
  | {
      readonly kind: "refused";
      readonly code: ErrorCode;
      readonly detail: string;
      /** What the protocol adds to this refusal's `error`. */
      readonly members: Readonly<Record<string, unknown>>;
      readonly lsn: Lsn;
    };

/**
 * The subscriptions of one shard (Durable Streams, reserved subscription API). Synchronous; refusals are answers. What
 * the journal refuses (disk_full, journal_failed …) comes as ForebayError with nothing changed.
 */
export interface Subscriptions {
  /**
   * @param base the URL under which the sender reaches this service, without a path
   * @throws ForebayError `webhook_rejected`
   */
  put(id: string, definition: Definition, base: string): Answer;
  get(id: string): Answer;
  remove(id: string): Answer;
  addStreams(id: string, paths: readonly string[]): Answer;
  removeStream(id: string, path: string): Answer;
  claim(id: string, worker: string): Answer;
  /** A webhook's receiver reports. */
  callback(id: string, report: WakeReport): Answer | Loading;
  /** A worker that claimed reports. */
  ack(id: string, report: WakeReport): Answer | Loading;
  release(id: string, report: WakeReport): Answer;
  /** The public keys of the webhook signatures; none before the first subscription. */
  jwks(): { readonly keys: readonly PublicJwk[]; readonly lsn: Lsn };
  stats(): SubscriptionStats;
}

/** The subscriptions together with what starts and ends them. */
export interface OwnedSubscriptions extends Subscriptions {
  /** After the streams' own start: takes up the wakes that were open, and looks for what happened meanwhile. */
  start(): void;
  /** Breaks off what is in flight. What was not confirmed is delivered again by the next start. */
  close(): void;
}

export interface SubscriptionStats {
  readonly subscriptions: number;
  readonly links: number;
  readonly wakesOpen: number;
  readonly webhooksInFlight: number;
  readonly webhooksWaiting: number;
  /** Since start. */
  readonly webhooksDelivered: number;
  readonly webhooksFailed: number;
  /** Streams that matched but could not be followed, because a limit was reached. */
  readonly streamsUnlinked: number;
}

/** One webhook to be sent. */
export interface WebhookPost {
  readonly url: string;
  readonly body: string;
  readonly signature: string;
}

export interface WebhookAnswer {
  readonly status: number;
  /** The body says `"done": true`. */
  readonly done: boolean;
  readonly retryAfterMs: number | null;
}

/** Sends one webhook and reads its answer; rejects when there is none, or when its address may not be called. */
export type PostWebhook = (post: WebhookPost, signal: AbortSignal) => Promise<WebhookAnswer>;

export interface SubscriptionLog {
  warn(fields: object, message: string): void;
}
