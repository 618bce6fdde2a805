import type { Lsn } from "../../shared/ids/mod.ts";
import { invariant } from "../../shared/errors/mod.ts";
import { parseOffset } from "../../shared/protocol/mod.ts";
import { Cold } from "../store/mod.ts";
import type { Streams } from "../stream/mod.ts";
import { done, refuse } from "./answers.ts";
import { type AckOp, type Op, opCode } from "./ops.ts";
import { firstPending, toldJson, toldOf } from "./pending.ts";
import type { Link, Subscription, SubscriptionState } from "./state.ts";
import type { Answer, WakeReport } from "./types.ts";
import type { Wakes } from "./wakes.ts";

export interface ReportsOptions {
  readonly streams: Streams;
  readonly state: SubscriptionState;
  readonly wakes: Wakes;
  /** Writes and applies. @throws ForebayError of the journal */
  readonly commit: (ops: readonly Op[]) => Lsn;
}

/** What workers and webhook receivers do with a wake: claim it, report on it, give it back. */
export class Reports {
  readonly #options: ReportsOptions;

  constructor(options: ReportsOptions) {
    this.#options = options;
  }

  claim(subscription: Subscription, worker: string): Answer {
    const { streams, wakes, commit } = this.#options;
    const { number, wake, lsn } = subscription;
    if (subscription.target.kind !== "pull-wake") {
      return notOfKind(subscription, "pull-wake");
    }
    if (wake !== null && wake.holder !== null) {
      const members = { current_holder: wake.holder, generation: wake.generation };
      return refuse("already_claimed", `${wake.holder} holds it`, lsn, members);
    }
    if (firstPending(streams, subscription) === null) {
      return refuse("no_pending_work", "every stream is acknowledged to its tail", lsn);
    }
    const ops: Op[] = wake === null ? [wakes.nextWake(subscription)] : [];
    ops.push({ code: opCode.claim, number, holder: worker });
    const at = commit(ops);
    wakes.lease(subscription);
    return done(200, this.#claimed(subscription), at);
  }

  #claimed(subscription: Subscription): object {
    const { streams, state } = this.#options;
    const { wake, number, leaseMs } = subscription;
    invariant(wake !== null && state.keys !== null, "what was claimed is open");
    return {
      wake_id: wake.id,
      generation: wake.generation,
      token: state.keys.token(number, wake.generation),
      streams: toldOf(streams, subscription).map(toldJson),
      lease_ttl_ms: leaseMs,
    };
  }

  /** Acknowledges, and either ends the wake or lengthens its lease. */
  report(
    subscription: Subscription,
    kind: Subscription["target"]["kind"],
    report: WakeReport,
  ): Answer {
    const refusal = this.#refuse(subscription, kind, report);
    if (refusal !== null) {
      return refusal;
    }
    const acks = this.#acksOf(subscription, report.acks);
    if ("kind" in acks) {
      return acks;
    }
    const { number } = subscription;
    const ops: Op[] = acks.length === 0 ? [] : [{ code: opCode.ack, number, acks }];
    if (report.done) {
      return this.#settle(subscription, ops);
    }
    if (ops.length > 0) {
      this.#options.commit(ops);
    }
    this.#options.wakes.extend(subscription);
    return done(200, { ok: true, next_wake: false }, subscription.lsn);
  }

  release(subscription: Subscription, report: WakeReport): Answer {
    const refusal = this.#refuse(subscription, "pull-wake", report);
    if (refusal !== null) {
      return refusal;
    }
    const { lsn } = this.#settle(subscription, []);
    return done(204, null, lsn);
  }

  #settle(subscription: Subscription, before: readonly Op[]): Answer {
    const { wakes, commit } = this.#options;
    commit([...before, { code: opCode.settle, number: subscription.number }]);
    wakes.forget(subscription);
    const next = wakes.consider(subscription);
    return done(200, { ok: true, next_wake: next }, subscription.lsn);
  }

  #refuse(
    subscription: Subscription,
    kind: Subscription["target"]["kind"],
    report: WakeReport,
  ): Answer | null {
    const { number, wake, generation, lsn, target } = subscription;
    const given = this.#options.state.keys?.generationOf(report.token, number) ?? null;
    if (given === null) {
      return refuse("bad_token", "the token was not made for this subscription", lsn);
    }
    if (target.kind !== kind) {
      return notOfKind(subscription, kind);
    }
    const current =
      wake !== null &&
      given === generation &&
      report.generation === generation &&
      report.wakeId === wake.id;
    if (current) {
      return null;
    }
    const detail = `generation ${report.generation} is over; ${generation} is the newest`;
    return refuse("fenced", detail, lsn, { generation });
  }

  /** The acknowledgements, or why one of them cannot be: then none is taken. */
  #acksOf(subscription: Subscription, acks: WakeReport["acks"]): Answer | AckOp["acks"] {
    const taken = new Map<string, AckOp["acks"][number]>();
    for (const { path, offset } of acks) {
      const link = subscription.links.get(path);
      const fault = this.#faultOf(link, path, offset);
      const position = parseOffset(offset);
      if (fault !== null || position === undefined) {
        const detail = `${JSON.stringify(offset.slice(0, 64))} of ${JSON.stringify(path)} ${fault ?? "is no offset"}`;
        return refuse("bad_ack_offset", detail, subscription.lsn);
      }
      if (position.record >= (taken.get(path)?.record ?? 0)) {
        taken.set(path, { path, record: position.record, byte: position.byte });
      }
    }
    return [...taken.values()];
  }

  #faultOf(link: Link | undefined, path: string, offset: string): string | null {
    if (link === undefined) {
      return "is of a stream that the subscription does not follow";
    }
    const position = parseOffset(offset);
    if (position === undefined) {
      return "is no offset";
    }
    if (position.record < (link.acked?.record ?? 0)) {
      return "is before what was acknowledged";
    }
    // The cursor's own life of the path, in it, and between two records.
    const options = { maxBytes: 1, touch: false, id: link.streamId };
    const batch = this.#options.streams.read(path, offset, options);
    if ("loading" in batch) {
      throw new Cold(() => batch.loading);
    }
    return "status" in batch ? "is none of the stream, or past its tail" : null;
  }
}

function notOfKind({ target, lsn }: Subscription, kind: Subscription["target"]["kind"]): Answer {
  return refuse(
    "bad_subscription",
    `this is for ${kind}, the subscription is a ${target.kind}`,
    lsn,
  );
}
