import { createHash } from "node:crypto";
import { invariant } from "../../shared/errors/mod.ts";
import type { Lsn } from "../../shared/ids/mod.ts";
import { limits } from "../../shared/limits.ts";
import type { Clock, Random } from "../../shared/ports/mod.ts";
import {
  type Loading,
  type OwnedStreams,
  type StreamLife,
  type Tenant,
  type TenantChange,
  unlessCold,
} from "../stream/mod.ts";
import type { AddressPolicy } from "./addresses.ts";
import { atOnce, documentOf, done, refuse } from "./answers.ts";
import { Deadlines } from "./deadlines.ts";
import { isMatch, linkAtTail, LinkKeeper } from "./links.ts";
import { changeOf, type LinkOp, type Op, opCode, opOf, type SubscribeOp } from "./ops.ts";
import { Reports } from "./reports.ts";
import { snapshot } from "./snapshot.ts";
import { type Subscription, SubscriptionState } from "./state.ts";
import type * as contract from "./types.ts";
import { Wakes } from "./wakes.ts";
import { Watch } from "./watch.ts";
import { checkWebhookUrl } from "./webhookUrl.ts";

export interface SubscriptionsOptions {
  readonly streams: OwnedStreams;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: contract.SubscriptionLog;
  readonly post: contract.PostWebhook;
  /** Where webhooks may go, as far as their URLs tell. `post` must hold the same where it connects. */
  readonly policy: AddressPolicy;
}

/** The subscriptions beside `streams`, in the same journal. Make them before the journal is replayed. */
export function createSubscriptions(options: SubscriptionsOptions): contract.OwnedSubscriptions {
  return new ShardSubscriptions(options);
}

const keyBytes = 32;

class ShardSubscriptions implements contract.OwnedSubscriptions, Tenant {
  readonly #streams: OwnedStreams;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #policy: AddressPolicy;
  readonly #state = new SubscriptionState();
  readonly #deadlines: Deadlines;
  readonly #links: LinkKeeper;
  readonly #wakes: Wakes;
  readonly #reports: Reports;
  readonly #watch: Watch;

  constructor({ streams, clock, random, log, post, policy }: SubscriptionsOptions) {
    this.#streams = streams;
    this.#clock = clock;
    this.#random = random;
    this.#policy = policy;
    const state = this.#state;
    const commit = (ops: readonly Op[]): Lsn => this.#commit(ops);
    const deadlines = new Deadlines(clock);
    const links = new LinkKeeper(streams, state);
    const wakes = new Wakes({ streams, clock, random, log, post, state, commit }, deadlines);
    this.#deadlines = deadlines;
    this.#links = links;
    this.#wakes = wakes;
    this.#reports = new Reports({ streams, state, wakes, commit });
    this.#watch = new Watch({ streams, state, links, wakes, deadlines, log, commit });
    streams.adopt(this);
  }

  // The tenant of the streams' journal.

  apply(code: number, body: Uint8Array, lsn: Lsn): void {
    this.#state.apply(opOf(code, body), lsn);
  }

  state(): Iterable<TenantChange> {
    return Array.from(snapshot(this.#state), changeOf);
  }

  onDurable({ path }: StreamLife, created: boolean): void {
    this.#watch.note(path, created);
  }

  onAdvanced(): void {
    this.#watch.lookAround();
  }

  start(): void {
    this.#watch.start();
  }

  close(): void {
    this.#watch.stop();
    this.#wakes.close();
    this.#deadlines.close();
  }

  #commit(ops: readonly Op[]): Lsn {
    return this.#streams.commitTenant(ops.map(changeOf));
  }

  // What requests ask for.

  put(id: string, definition: contract.Definition, base: string): contract.Answer {
    const existing = this.#state.byId.get(id);
    const digest = digestOf(definition);
    if (existing !== undefined) {
      return existing.digest === digest
        ? done(200, this.#document(existing), existing.lsn)
        : refuse("subscription_exists", `${shown(id)} has another configuration`, existing.lsn);
    }
    if (this.#state.byId.size >= limits.subscriptionsMax) {
      const detail = `there are ${this.#state.byId.size} subscriptions, as many as there may be`;
      return refuse("too_many_subscriptions", detail, atOnce);
    }
    if (definition.target.kind === "webhook") {
      checkWebhookUrl(definition.target.url, this.#policy);
    }
    const number = this.#state.lastNumber + 1;
    const links = this.#initialLinks(number, definition);
    const refusal = this.#refuseLinks(0, links);
    if (refusal !== null) {
      return refusal;
    }
    const { target, glob, leaseMs, description } = definition;
    const pattern = glob?.text ?? null;
    const time = this.#clock.now();
    const head: Omit<SubscribeOp, "code"> = {
      number,
      time,
      id,
      target,
      pattern,
      description,
      leaseMs,
      base,
      digest,
    };
    const ops: Op[] = [{ code: opCode.subscribe, ...head }, ...links];
    if (this.#state.keys === null) {
      const signingSeed = this.#random.bytes(keyBytes);
      ops.unshift({ code: opCode.keys, time, signingSeed, tokenKey: this.#random.bytes(keyBytes) });
    }
    const lsn = this.#commit(ops);
    return done(201, this.#document(this.#living(id)), lsn);
  }

  #initialLinks(number: number, definition: contract.Definition): LinkOp[] {
    const named = new Set(definition.streams);
    const links = [...named].map((path) =>
      linkAtTail(number, path, this.#streams.life(path), {
        explicit: true,
        glob: isMatch(definition, path),
      }),
    );
    if (definition.glob !== null) {
      for (const life of this.#streams.lives()) {
        if (!named.has(life.path) && isMatch(definition, life.path)) {
          links.push(linkAtTail(number, life.path, life, { explicit: false, glob: true }));
        }
      }
    }
    return links;
  }

  /** All links of a request lie in one entry. */
  #refuseLinks(present: number, added: readonly LinkOp[]): contract.Answer | null {
    const bytes = added.reduce((sum, { path }) => sum + path.length, 0);
    const total = this.#state.links + added.length;
    if (
      present + added.length <= limits.subscriptionLinksMax &&
      total <= limits.subscriptionLinksTotalMax &&
      bytes <= limits.bodyBytesMax
    ) {
      return null;
    }
    const detail =
      `it would follow ${present + added.length} streams, at most ${limits.subscriptionLinksMax} ` +
      `and ${limits.subscriptionLinksTotalMax} together with all others`;
    return refuse("too_many_links", detail, atOnce);
  }

  get(id: string): contract.Answer {
    const subscription = this.#state.byId.get(id);
    return subscription === undefined
      ? this.#notFound(id)
      : done(200, this.#document(subscription), subscription.lsn);
  }

  /** Idempotent: what is not there is gone. */
  remove(id: string): contract.Answer {
    const subscription = this.#state.byId.get(id);
    if (subscription === undefined) {
      return done(204, null, this.#state.endLsn);
    }
    const lsn = this.#commit([{ code: opCode.unsubscribe, number: subscription.number }]);
    this.#wakes.cancel(subscription);
    this.#links.forget(subscription);
    return done(204, null, lsn);
  }

  addStreams(id: string, paths: readonly string[]): contract.Answer {
    const subscription = this.#state.byId.get(id);
    if (subscription === undefined) {
      return this.#notFound(id);
    }
    const { number, target, links } = subscription;
    const ops: LinkOp[] = [];
    for (const path of new Set(paths)) {
      if (target.kind === "pull-wake" && target.stream === path) {
        return refuse(
          "bad_subscription",
          `${shown(path)} is where its own wakes go`,
          subscription.lsn,
        );
      }
      const link = links.get(path);
      if (link === undefined) {
        const reasons = { explicit: true, glob: isMatch(subscription, path) };
        ops.push(linkAtTail(number, path, this.#streams.life(path), reasons));
      } else if (!link.explicit) {
        ops.push({ code: opCode.link, number, ...link, explicit: true });
      }
    }
    const refusal = this.#refuseLinks(links.size, ops);
    if (refusal !== null || ops.length === 0) {
      return refusal ?? done(204, null, subscription.lsn);
    }
    return done(204, null, this.#commit(ops));
  }

  removeStream(id: string, path: string): contract.Answer {
    const subscription = this.#state.byId.get(id);
    if (subscription === undefined) {
      return this.#notFound(id);
    }
    const { number, links } = subscription;
    const link = links.get(path);
    if (link === undefined || !link.explicit) {
      return done(204, null, subscription.lsn);
    }
    const op: Op = link.glob
      ? { code: opCode.link, number, ...link, explicit: false }
      : { code: opCode.unlink, number, path };
    return done(204, null, this.#commit([op]));
  }

  claim(id: string, worker: string): contract.Answer {
    const subscription = this.#state.byId.get(id);
    return subscription === undefined
      ? this.#notFound(id)
      : this.#reports.claim(subscription, worker);
  }

  callback(id: string, report: contract.WakeReport): contract.Answer | Loading {
    const subscription = this.#state.byId.get(id);
    return subscription === undefined
      ? this.#notFound(id)
      : unlessCold(() => this.#reports.report(subscription, "webhook", report));
  }

  ack(id: string, report: contract.WakeReport): contract.Answer | Loading {
    const subscription = this.#state.byId.get(id);
    return subscription === undefined
      ? this.#notFound(id)
      : unlessCold(() => this.#reports.report(subscription, "pull-wake", report));
  }

  release(id: string, report: contract.WakeReport): contract.Answer {
    const subscription = this.#state.byId.get(id);
    return subscription === undefined
      ? this.#notFound(id)
      : this.#reports.release(subscription, report);
  }

  jwks(): ReturnType<contract.Subscriptions["jwks"]> {
    const { keys } = this.#state;
    return keys === null
      ? { keys: [], lsn: atOnce }
      : { keys: [keys.jwk], lsn: this.#state.keysLsn };
  }

  stats(): contract.SubscriptionStats {
    return {
      subscriptions: this.#state.byId.size,
      links: this.#state.links,
      wakesOpen: this.#wakes.open,
      webhooksInFlight: this.#wakes.inFlight,
      webhooksWaiting: this.#wakes.waiting,
      webhooksDelivered: this.#wakes.delivered,
      webhooksFailed: this.#wakes.failed,
      streamsUnlinked: this.#links.unlinkedTotal,
    };
  }

  #living(id: string): Subscription {
    const subscription = this.#state.byId.get(id);
    invariant(subscription !== undefined, "what was subscribed is there");
    return subscription;
  }

  #document(subscription: Subscription): object {
    const { keys } = this.#state;
    invariant(keys !== null, "the keys are older than every subscription");
    return documentOf(subscription, keys, {
      nextAttemptAt: this.#wakes.nextAttemptAt(subscription),
      unlinked: this.#links.unlinkedOf(subscription),
    });
  }

  #notFound(id: string): contract.Answer {
    return refuse(
      "subscription_not_found",
      `there is no subscription ${shown(id)}`,
      this.#state.endLsn,
    );
  }
}

function shown(text: string): string {
  return JSON.stringify(text);
}

/** Same configuration, same digest, in whatever order its streams were named. */
function digestOf({ target, glob, streams, leaseMs, description }: contract.Definition): string {
  const canonical = [
    target,
    glob?.text ?? null,
    [...new Set(streams)].toSorted(),
    leaseMs,
    description,
  ];
  return createHash("sha256").update(JSON.stringify(canonical)).digest("base64url");
}
