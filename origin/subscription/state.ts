import { invariant } from "../../shared/errors/mod.ts";
import { type Lsn, lsn } from "../../shared/ids/mod.ts";
import { Glob } from "./glob.ts";
import { Keys } from "./keys.ts";
import {
  type AckOp,
  type LinkOp,
  type Op,
  opCode,
  type Position,
  type SubscribeOp,
  type WakeOp,
} from "./ops.ts";

/** One path that a subscription follows. */
export interface Link {
  readonly path: string;
  readonly explicit: boolean;
  readonly glob: boolean;
  /** The life of the path that the cursor is in; 0 while there is none. */
  readonly streamId: number;
  acked: Position | null;
}

/** The right to work on what is pending, from the moment it is offered until it is settled. */
export interface Wake {
  readonly id: string;
  readonly generation: number;
  readonly lsn: Lsn;
  /** The worker that claimed it; null for a webhook's, and for one nobody has claimed yet. */
  holder: string | null;
}

/** Invariants: `wake.generation` is `generation`; generations rise by one with each wake and never fall back. */
export interface Subscription extends Omit<SubscribeOp, "code" | "pattern"> {
  readonly glob: Glob | null;
  readonly links: Map<string, Link>;
  generation: number;
  wake: Wake | null;
  /** Newest entry that changed it. */
  lsn: Lsn;
}

/** All that replay rebuilds. Changed by `apply` only, live and at replay. */
export class SubscriptionState {
  readonly byId: Map<string, Subscription> = new Map();
  readonly byNumber: Map<number, Subscription> = new Map();
  /** Path → who follows it. */
  readonly followers: Map<string, Set<Subscription>> = new Map();
  keys: Keys | null = null;
  keysLsn: Lsn = lsn(0);
  lastNumber = 0;
  links = 0;
  /** Newest entry that ended a subscription: what "no such subscription" is judged by. */
  endLsn: Lsn = lsn(0);

  apply(op: Op, at: Lsn): void {
    if (op.code === opCode.keys) {
      this.keys = new Keys(op.signingSeed, op.tokenKey);
      this.keysLsn = at;
      return;
    }
    if (op.code === opCode.subscribe) {
      this.#subscribe(op, at);
      return;
    }
    if (op.code === opCode.numbered) {
      this.lastNumber = op.number;
      return;
    }
    const subscription = this.byNumber.get(op.number);
    invariant(subscription !== undefined, "an op names a living subscription");
    subscription.lsn = at;
    switch (op.code) {
      case opCode.unsubscribe:
        this.#unsubscribe(subscription, at);
        return;
      case opCode.link:
        this.#link(subscription, op);
        return;
      case opCode.unlink:
        this.#unlink(subscription, op.path);
        return;
      case opCode.ack:
        applyAcks(subscription, op.acks);
        return;
      case opCode.wake:
        openWake(subscription, op, at);
        return;
      case opCode.claim:
        invariant(subscription.wake?.holder === null, "only what nobody holds is claimed");
        subscription.wake.holder = op.holder;
        return;
      case opCode.generation:
        subscription.generation = op.generation;
        return;
      case opCode.settle:
        invariant(subscription.wake !== null, "a wake is settled once");
        subscription.wake = null;
        return;
    }
  }

  #subscribe(op: SubscribeOp, at: Lsn): void {
    const { number, id, pattern } = op;
    invariant(!this.byId.has(id), "an id has one living subscription");
    invariant(number > this.lastNumber, "numbers of subscriptions rise");
    const subscription: Subscription = {
      ...op,
      glob: pattern === null ? null : new Glob(pattern),
      links: new Map(),
      generation: 0,
      wake: null,
      lsn: at,
    };
    this.lastNumber = number;
    this.byId.set(id, subscription);
    this.byNumber.set(number, subscription);
  }

  #unsubscribe(subscription: Subscription, at: Lsn): void {
    for (const path of subscription.links.keys()) {
      this.#unlink(subscription, path);
    }
    subscription.wake = null;
    this.byId.delete(subscription.id);
    this.byNumber.delete(subscription.number);
    this.endLsn = at;
  }

  #link(subscription: Subscription, { path, explicit, glob, streamId, acked }: LinkOp): void {
    invariant(explicit || glob, "a link has a reason");
    this.links += subscription.links.has(path) ? 0 : 1;
    subscription.links.set(path, { path, explicit, glob, streamId, acked });
    const followers = this.followers.get(path);
    if (followers === undefined) {
      this.followers.set(path, new Set([subscription]));
    } else {
      followers.add(subscription);
    }
  }

  #unlink(subscription: Subscription, path: string): void {
    invariant(subscription.links.delete(path), "what is unlinked was linked");
    this.links -= 1;
    const followers = this.followers.get(path);
    followers?.delete(subscription);
    if (followers?.size === 0) {
      this.followers.delete(path);
    }
  }
}

function applyAcks(subscription: Subscription, acks: AckOp["acks"]): void {
  for (const { path, record, byte } of acks) {
    const link = subscription.links.get(path);
    invariant(link !== undefined, "an acknowledgement names a link");
    invariant(record >= (link.acked?.record ?? 0), "a cursor never falls back");
    link.acked = { record, byte };
  }
}

function openWake(subscription: Subscription, op: WakeOp, at: Lsn): void {
  invariant(subscription.wake === null, "a subscription has one wake at a time");
  invariant(op.generation === subscription.generation + 1, "generations rise by one");
  subscription.generation = op.generation;
  subscription.wake = { id: op.wakeId, generation: op.generation, lsn: at, holder: null };
}
