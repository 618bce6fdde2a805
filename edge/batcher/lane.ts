import { ForebayError, invariant } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import type { Clock } from "../../shared/ports/mod.ts";
import type { PendingBudget } from "./budget.ts";
import { lingerFor, smoothed } from "./linger.ts";

/** What one request brings besides its item. Never shared: used only while that request's own code runs. */
export interface Turn<Item, Result> {
  /**
   * Sends one batch with this request's own I/O; one result per item, in order. Must end within `flightMsMax`.
   * A rejection with a ForebayError is the outcome of every item of the batch.
   */
  send(items: readonly Item[]): Promise<readonly Result[]>;
  /** Keeps this request's context alive when its client goes away. */
  waitUntil(work: Promise<unknown>): void;
}

export interface Weight {
  /** Bytes of the item in a frame, header included. */
  readonly bytes: number;
  readonly records: number;
}

/** Counters of one lane since this isolate began. */
export interface LaneStats {
  readonly requests: number;
  readonly flights: number;
  readonly flownRequests: number;
  readonly flownBytes: number;
  /** Flights whose context died under them. */
  readonly lostFlights: number;
  /** Requests that gave up after `batchWaitMsMax`. */
  readonly abandoned: number;
  readonly queued: number;
  readonly inFlight: number;
}

type Outcome<Result> =
  | { readonly ok: true; readonly value: Result }
  | { readonly ok: false; readonly error: ForebayError };

interface Waiter<Item, Result> {
  readonly item: Item;
  readonly weight: Weight;
  /** When it may fly though the batch is not full, and when it gives up, ms. */
  readonly dueAt: number;
  readonly giveUpAt: number;
  state: "queued" | "flying" | "landed";
  outcome: Outcome<Result> | undefined;
  /** Resolves the promise its own request sleeps on. */
  wake: () => void;
}

interface Flight<Item, Result> {
  readonly waiters: readonly Waiter<Item, Result>[];
  readonly startedAt: number;
}

/** A flight older than this has lost its context; its batch's fate is unknown. */
export const flightMsMax: number = limits.batchWaitMsMax + 2000;
/** How often a sleeping waiter looks after the lane by itself, should every wake have gone to a dead context. */
const backstopMs = 1000;
/** Waiters woken when the lane falls free: the head and a few more, in case the head's context is gone. */
const wakeWidth = 4;

const nobody = (): void => {};

/**
 * The queue in front of one target (the origin, or one outbox): at most one flight at a time, in arrival order.
 *
 * Leaderless: every request owns the promise it sleeps on and the timer that ends the sleep. Whoever runs first while
 * the lane is free takes the batch from the head and sends it under its own `waitUntil`; a landing flight settles its
 * waiters and *wakes* them, and a few of the queue. Between requests go only plain objects, bytes and resolvers:
 * resolving another request's promise is safe in workerd, awaiting it is not.
 *
 * Invariants: a waiter is in the queue exactly while `queued`; its bytes are held in the budget until it is `landed`;
 * `outcome` is set once.
 */
export class Lane<Item, Result> {
  readonly #clock: Clock;
  readonly #budget: PendingBudget;
  readonly #queue: Waiter<Item, Result>[] = [];
  #queuedBytes = 0;
  #queuedRecords = 0;
  #flight: Flight<Item, Result> | null = null;
  #meanFlightMs = 0;
  readonly #count = {
    requests: 0,
    flights: 0,
    flownRequests: 0,
    flownBytes: 0,
    lostFlights: 0,
    abandoned: 0,
  };

  constructor(clock: Clock, budget: PendingBudget) {
    this.#clock = clock;
    this.#budget = budget;
  }

  /**
   * Waits for a place in a batch and for its outcome.
   *
   * @throws ForebayError `edge_overloaded` (nothing stored), `outcome_unknown`, or what `send` rejects with
   */
  async submit(item: Item, weight: Weight, turn: Turn<Item, Result>): Promise<Result> {
    this.#budget.take(weight.bytes);
    const waiter = this.#enqueue(item, weight);
    const driven = this.#drive(waiter, turn);
    turn.waitUntil(driven);
    const outcome = await driven;
    if (!outcome.ok) {
      throw outcome.error;
    }
    return outcome.value;
  }

  stats(): LaneStats {
    return {
      ...this.#count,
      queued: this.#queue.length,
      inFlight: this.#flight?.waiters.length ?? 0,
    };
  }

  #enqueue(item: Item, weight: Weight): Waiter<Item, Result> {
    const now = this.#clock.now();
    this.#reapLostFlight(now);
    const idle = this.#flight === null && this.#queue.length === 0;
    const waiter: Waiter<Item, Result> = {
      item,
      weight,
      dueAt: idle ? now : now + lingerFor(this.#meanFlightMs),
      giveUpAt: now + limits.batchWaitMsMax,
      state: "queued",
      outcome: undefined,
      wake: nobody,
    };
    this.#queue.push(waiter);
    this.#queuedBytes += weight.bytes;
    this.#queuedRecords += weight.records;
    this.#count.requests += 1;
    return waiter;
  }

  /** One request's own loop, from its queue place to its outcome. Never rejects. */
  async #drive(waiter: Waiter<Item, Result>, turn: Turn<Item, Result>): Promise<Outcome<Result>> {
    for (;;) {
      if (waiter.outcome !== undefined) {
        return waiter.outcome;
      }
      const now = this.#clock.now();
      this.#reapLostFlight(now);
      if (now >= waiter.giveUpAt) {
        this.#abandon(waiter);
        continue;
      }
      const wait = this.#flight === null ? this.#dueIn(now) : backstopMs;
      if (wait <= 0 && waiter.state === "queued") {
        turn.waitUntil(this.#fly(turn, now));
        continue;
      }
      await this.#sleep(waiter, Math.min(Math.max(wait, 1), backstopMs, waiter.giveUpAt - now));
    }
  }

  /** Ms until the head may fly; 0 or less when it is due or the batch is full. */
  #dueIn(now: number): number {
    const full =
      this.#queuedBytes >= limits.batchBytesTarget || this.#queuedRecords >= limits.batchRecordsMax;
    return full ? 0 : (this.#queue[0]?.dueAt ?? now + backstopMs) - now;
  }

  /** Until woken, or `ms` are over. The timer is cancelled here, in the context that made it. */
  async #sleep(waiter: Waiter<Item, Result>, ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#clock.after(ms, resolve);
    waiter.wake = resolve;
    await promise;
    waiter.wake = nobody;
    timer.cancel();
  }

  /** Not awaited by the waiter that starts it: it sleeps like the others and gives up like them. Never rejects. */
  async #fly(turn: Turn<Item, Result>, now: number): Promise<void> {
    const waiters = this.#takeBatch();
    const flight: Flight<Item, Result> = { waiters, startedAt: now };
    this.#flight = flight;
    this.#count.flights += 1;
    this.#count.flownRequests += waiters.length;
    try {
      const results = await turn.send(waiters.map((waiter) => waiter.item));
      invariant(
        results.length === waiters.length,
        `${results.length} results for ${waiters.length} requests`,
      );
      this.#land(flight, (i) => ({ ok: true, value: results[i] as Result }));
    } catch (error) {
      const failure = asForebayError(error);
      this.#land(flight, () => ({ ok: false, error: failure }));
    }
  }

  /** From the head while the batch stays within its targets; always at least one. */
  #takeBatch(): Waiter<Item, Result>[] {
    let count = 0;
    let bytes = 0;
    let records = 0;
    for (const { weight } of this.#queue) {
      const fits =
        bytes + weight.bytes <= limits.batchBytesTarget &&
        records + weight.records <= limits.batchRecordsMax;
      if (count > 0 && !fits) {
        break;
      }
      count += 1;
      bytes += weight.bytes;
      records += weight.records;
    }
    const batch = this.#queue.splice(0, count);
    for (const waiter of batch) {
      waiter.state = "flying";
    }
    this.#queuedBytes -= bytes;
    this.#queuedRecords -= records;
    this.#count.flownBytes += bytes;
    return batch;
  }

  #land(flight: Flight<Item, Result>, outcomeOf: (i: number) => Outcome<Result>): void {
    if (this.#flight === flight) {
      this.#flight = null;
      this.#meanFlightMs = smoothed(this.#meanFlightMs, this.#clock.now() - flight.startedAt);
    }
    for (const [i, waiter] of flight.waiters.entries()) {
      this.#settle(waiter, outcomeOf(i));
    }
    for (const waiter of this.#queue.slice(0, wakeWidth)) {
      waiter.wake();
    }
  }

  #settle(waiter: Waiter<Item, Result>, outcome: Outcome<Result>): void {
    if (waiter.state !== "landed") {
      waiter.state = "landed";
      this.#budget.release(waiter.weight.bytes);
    }
    waiter.outcome ??= outcome;
    waiter.wake();
  }

  #reapLostFlight(now: number): void {
    const flight = this.#flight;
    if (flight !== null && now - flight.startedAt > flightMsMax) {
      this.#count.lostFlights += 1;
      const error = new ForebayError(
        "outcome_unknown",
        "the request that carried this batch was ended by the runtime",
      );
      this.#land(flight, () => ({ ok: false, error }));
    }
  }

  /** A flying waiter's bytes stay held until its flight lands; a queued one was never sent. */
  #abandon(waiter: Waiter<Item, Result>): void {
    this.#count.abandoned += 1;
    if (waiter.state === "flying") {
      const waited = `no answer within ${limits.batchWaitMsMax} ms`;
      waiter.outcome = { ok: false, error: new ForebayError("outcome_unknown", waited) };
      return;
    }
    this.#queue.splice(this.#queue.indexOf(waiter), 1);
    this.#queuedBytes -= waiter.weight.bytes;
    this.#queuedRecords -= waiter.weight.records;
    const unsent = `no turn within ${limits.batchWaitMsMax} ms; nothing was stored`;
    this.#settle(waiter, { ok: false, error: new ForebayError("edge_overloaded", unsent) });
  }
}

function asForebayError(error: unknown): ForebayError {
  return error instanceof ForebayError
    ? error
    : new ForebayError("outcome_unknown", `the batch's outcome is not known: ${String(error)}`, {
        cause: error,
      });
}
