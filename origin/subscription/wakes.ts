import { ForebayError, invariant } from "../../shared/errors/mod.ts";
import type { Lsn } from "../../shared/ids/mod.ts";
import { limits } from "../../shared/limits.ts";
import type { Clock, Random } from "../../shared/ports/mod.ts";
import type { Streams } from "../stream/mod.ts";
import { offerWake, sendWebhook } from "./attempt.ts";
import type { Deadlines } from "./deadlines.ts";
import { type Op, opCode } from "./ops.ts";
import { firstPending, type Told, toldOf } from "./pending.ts";
import { Slots } from "./slots.ts";
import type { Subscription, SubscriptionState, Wake } from "./state.ts";
import type { PostWebhook, SubscriptionLog, WebhookAnswer } from "./types.ts";

/**
 * Where an open wake stands. The journal knows that it is open and who holds it; the rest is this process's own and
 * begins anew after a restart.
 *
 *     opening ─durable─▶ queued ─slot─▶ sending ─2xx─▶ leased ─time─▶ settled
 *                          ▲              │ else                       ▲ done, release
 *                          └── retrying ◀─┘                            │
 *     opening ─durable─▶ offered (its event is in the wake stream) ─claim─▶ leased
 */
type Phase = "opening" | "queued" | "sending" | "retrying" | "offered" | "leased";

interface Run {
  readonly subscription: Subscription;
  readonly wake: Wake;
  phase: Phase;
  /** Attempts that failed, one after the other. */
  failures: number;
  /** The receiver has called back while the attempt was under way: it has the wake, whatever becomes of the attempt. */
  heard: boolean;
  /** What the newest attempt told: `done` acknowledges this and no more. */
  told: readonly Told[];
  abort: AbortController | null;
}

export interface WakesOptions {
  readonly streams: Streams;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: SubscriptionLog;
  readonly post: PostWebhook;
  readonly state: SubscriptionState;
  /** Writes and applies. @throws ForebayError of the journal */
  readonly commit: (ops: readonly Op[]) => Lsn;
}

const backoffMsMin = 1000;
const backoffMsMax = 60_000;
const wakeIdBytes = 12;

/** Opens wakes, delivers them, ends them. */
export class Wakes {
  readonly #options: WakesOptions;
  readonly #deadlines: Deadlines;
  readonly #slots = new Slots(limits.webhooksInFlightMax);
  readonly #runs: Map<Subscription, Run> = new Map();
  #closed = false;
  delivered = 0;
  failed = 0;

  constructor(options: WakesOptions, deadlines: Deadlines) {
    this.#options = options;
    this.#deadlines = deadlines;
  }

  get open(): number {
    return this.#runs.size;
  }

  get inFlight(): number {
    return this.#slots.running;
  }

  get waiting(): number {
    return this.#slots.waiting;
  }

  /** When the next attempt of a failing delivery is due, ms since 1970; null when none failed. */
  nextAttemptAt(subscription: Subscription): number | null {
    const run = this.#runs.get(subscription);
    if (run === undefined || run.failures === 0 || run.phase === "leased") {
      return null;
    }
    return this.#deadlines.at(subscription) ?? this.#options.clock.now();
  }

  /** The op that opens the next wake. */
  nextWake({ number, generation }: Subscription): Op {
    const id = Buffer.from(this.#options.random.bytes(wakeIdBytes)).toString("hex");
    return { code: opCode.wake, number, generation: generation + 1, wakeId: `w_${id}` };
  }

  /**
   * Opens a wake when none is open and something is pending. When the journal cannot take it, tries again later.
   *
   * @returns whether one was opened
   */
  consider(subscription: Subscription): boolean {
    const { streams, commit } = this.#options;
    if (subscription.wake !== null || firstPending(streams, subscription) === null) {
      return false;
    }
    const opened = this.#tryTo(subscription, 0, () => commit([this.nextWake(subscription)]));
    if (opened) {
      this.deliver(subscription);
    }
    return opened;
  }

  /** A wake was opened, or was found open at start: brings it to whom it is for once it is durable. */
  deliver(subscription: Subscription): void {
    const run = this.#begin(subscription, "opening");
    this.#options.streams.hold(run.wake.lsn, {
      release: () => this.#opened(run),
      // What could not be made durable is not told to anyone.
      fail: () => {},
    });
  }

  /** A worker has the wake, from now on for the time of a lease. */
  lease(subscription: Subscription): void {
    this.#lease(this.#runs.get(subscription) ?? this.#begin(subscription, "leased"));
  }

  /** The receiver or worker gives a sign: the lease begins anew. */
  extend(subscription: Subscription): void {
    const run = this.#runs.get(subscription);
    invariant(run !== undefined, "an open wake has its run");
    if (run.phase === "sending") {
      run.heard = true;
    } else {
      this.#lease(run);
    }
  }

  /** The wake was settled in the journal, or its subscription is no more. */
  forget(subscription: Subscription): void {
    this.#deadlines.clear(subscription);
    this.#runs.delete(subscription);
  }

  /** The subscription is removed: what is in flight for it is broken off. */
  cancel(subscription: Subscription): void {
    this.#runs.get(subscription)?.abort?.abort(new Error("the subscription was removed"));
    this.forget(subscription);
  }

  close(): void {
    this.#closed = true;
    this.#slots.close();
    for (const run of this.#runs.values()) {
      run.abort?.abort(new Error("the server shuts down"));
    }
    this.#runs.clear();
  }

  #begin(subscription: Subscription, phase: Phase): Run {
    const { wake } = subscription;
    invariant(wake !== null, "a run is of an open wake");
    const run = { subscription, wake, phase, failures: 0, heard: false, told: [], abort: null };
    this.#runs.set(subscription, run);
    // What was due before the wake was open is not this wake's affair.
    this.#deadlines.clear(subscription);
    return run;
  }

  #isCurrent(run: Run, phase: Phase): boolean {
    return this.#runs.get(run.subscription) === run && run.phase === phase;
  }

  #opened(run: Run): void {
    if (this.#isCurrent(run, "opening")) {
      this.#attempt(run);
    }
  }

  #attempt(run: Run): void {
    if (run.subscription.target.kind === "pull-wake") {
      this.#offer(run);
      return;
    }
    run.phase = "queued";
    const key = run.subscription.number;
    this.#slots.add({ key, retry: run.failures > 0, run: () => this.#send(run) });
  }

  #offer(run: Run): void {
    const { streams, clock } = this.#options;
    let refusal: string | null;
    try {
      refusal = offerWake(streams, run, clock.now());
    } catch (error) {
      refusal = operating(error).message;
    }
    if (refusal === null) {
      run.phase = "offered";
      run.failures = 0;
    } else {
      this.#retry(run, refusal, null);
    }
  }

  async #send(run: Run): Promise<void> {
    if (!this.#isCurrent(run, "queued") || this.#closed) {
      return;
    }
    const { streams, state, clock, post } = this.#options;
    const abort = new AbortController();
    run.phase = "sending";
    run.told = toldOf(streams, run.subscription);
    run.abort = abort;
    const answer = await sendWebhook({ ...run, abort }, state, clock, post);
    run.abort = null;
    if (this.#isCurrent(run, "sending") && !this.#closed) {
      this.#answered(run, answer);
    }
  }

  #answered(run: Run, answer: WebhookAnswer | Error): void {
    if (answer instanceof Error || answer.status < 200 || answer.status > 299) {
      this.failed += 1;
      if (run.heard) {
        this.#lease(run);
      } else if (answer instanceof Error) {
        this.#retry(run, answer.message, null);
      } else {
        this.#retry(run, `it was answered ${answer.status}`, answer.retryAfterMs);
      }
      return;
    }
    this.delivered += 1;
    if (answer.done) {
      this.#finish(run);
    } else {
      this.#lease(run);
    }
  }

  /** `done` in the webhook's own answer: all that it told is acknowledged. */
  #finish(run: Run): void {
    const { subscription } = run;
    const { number, links } = subscription;
    const acks = run.told
      .filter(({ link, streamId, record }) => {
        const now = links.get(link.path);
        return now?.streamId === streamId && record >= (now.acked?.record ?? 0) && streamId !== 0;
      })
      .map(({ link, record, byte }) => ({ path: link.path, record, byte }));
    const ops: Op[] = [{ code: opCode.settle, number }];
    if (acks.length > 0) {
      ops.unshift({ code: opCode.ack, number, acks });
    }
    try {
      this.#options.commit(ops);
    } catch (error) {
      this.#retry(run, operating(error).message, null);
      return;
    }
    this.forget(subscription);
    this.consider(subscription);
  }

  #lease(run: Run): void {
    run.phase = "leased";
    run.failures = 0;
    run.heard = false;
    const { subscription } = run;
    this.#deadlines.set(subscription, subscription.leaseMs, () => this.#expire(subscription, 0));
  }

  /** Nobody has reported in time: whoever had the wake is fenced, and what is pending is offered anew. */
  #expire(subscription: Subscription, failures: number): void {
    const settle: Op = { code: opCode.settle, number: subscription.number };
    const { commit } = this.#options;
    const settled = this.#tryTo(subscription, failures, () => commit([settle]));
    if (settled) {
      this.forget(subscription);
      this.consider(subscription);
    }
  }

  #retry(run: Run, reason: string, atLeastMs: number | null): void {
    run.failures += 1;
    run.phase = "retrying";
    const { id, target } = run.subscription;
    const waitMs = Math.max(
      this.#backoff(run.failures - 1),
      Math.min(atLeastMs ?? 0, backoffMsMax),
    );
    // Of a webhook's URL only the host: its path or query may be a secret.
    const to = target.kind === "webhook" ? new URL(target.url).host : target.stream;
    const fields = { subscription: id, to, failures: run.failures, waitMs, reason };
    this.#options.log.warn(fields, "a wake could not be delivered");
    this.#deadlines.set(run.subscription, waitMs, () => {
      if (this.#isCurrent(run, "retrying")) {
        this.#attempt(run);
      }
    });
  }

  /** Full jitter: uniform below a bound that doubles. */
  #backoff(failures: number): number {
    const bound = Math.min(backoffMsMax, backoffMsMin * 2 ** Math.min(failures, 16));
    return Math.floor(this.#options.random.next() * bound);
  }

  /** Runs what writes. When the journal refuses it, the same is tried again later. */
  #tryTo(subscription: Subscription, failures: number, write: () => void): boolean {
    try {
      write();
      return true;
    } catch (error) {
      const { message } = operating(error);
      this.#options.log.warn({ subscription: subscription.id, reason: message }, "a wake waits");
      const waitMs = Math.max(backoffMsMin, this.#backoff(failures + 1));
      this.#deadlines.set(subscription, waitMs, () => {
        if (subscription.wake === null) {
          this.consider(subscription);
        } else {
          this.#expire(subscription, failures + 1);
        }
      });
      return false;
    }
  }
}

/** The operating error that `error` is; anything else goes on and ends the process. */
function operating(error: unknown): ForebayError {
  if (error instanceof ForebayError) {
    return error;
  }
  throw error;
}
