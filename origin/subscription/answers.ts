import type { ErrorCode } from "../../shared/errors/mod.ts";
import { type Lsn, lsn } from "../../shared/ids/mod.ts";
import { jwksUrl } from "./notice.ts";
import { ackedOffset, linkType } from "./pending.ts";
import type { Keys } from "./keys.ts";
import type { Subscription } from "./state.ts";
import type { Answer } from "./types.ts";

/** Judged by the request alone: nothing to wait for. */
export const atOnce: Lsn = lsn(0);

export function done(status: 200 | 201 | 204, body: object | null, at: Lsn): Answer {
  return { kind: "done", status, body, lsn: at };
}

export function refuse(
  code: ErrorCode,
  detail: string,
  at: Lsn,
  members: Readonly<Record<string, unknown>> = {},
): Answer {
  return { kind: "refused", code, detail, members, lsn: at };
}

/** What only this process knows of a subscription. */
export interface Condition {
  readonly nextAttemptAt: number | null;
  readonly unlinked: number;
}

/** A subscription as `PUT` and `GET` show it. No secret is in it. */
export function documentOf(subscription: Subscription, keys: Keys, condition: Condition): object {
  const { id, target, glob, links, leaseMs, time, description, base } = subscription;
  const { nextAttemptAt, unlinked } = condition;
  return {
    id,
    subscription_id: id,
    type: target.kind,
    ...(glob === null ? {} : { pattern: glob.text }),
    streams: [...links.values()].map((link) => ({
      path: link.path,
      link_type: linkType(link),
      acked_offset: ackedOffset(link),
    })),
    ...(target.kind === "webhook"
      ? {
          webhook: {
            url: target.url,
            signing: { alg: "ed25519", kid: keys.jwk.kid, jwks_url: jwksUrl(base) },
          },
        }
      : { wake_stream: target.stream }),
    lease_ttl_ms: leaseMs,
    created_at: new Date(time).toISOString(),
    status: nextAttemptAt === null ? "active" : "failed",
    ...(nextAttemptAt === null ? {} : { next_attempt_at: new Date(nextAttemptAt).toISOString() }),
    ...(unlinked === 0 ? {} : { unlinked_streams: unlinked }),
    ...(description === null ? {} : { description }),
  };
}
