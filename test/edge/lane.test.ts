import { expect, test } from "vitest";
import { PendingBudget } from "../../edge/batcher/budget.ts";
import { flightMsMax, Lane, type Turn } from "../../edge/batcher/lane.ts";
import { ForebayError } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import type { Clock } from "../../shared/ports/mod.ts";

/** A clock that moves only when told; timers fire in order of their time. */
class TestClock implements Clock {
  #now = 1_000_000;
  #timers: { readonly at: number; readonly fire: () => void; live: boolean }[] = [];
  now(): number {
    return this.#now;
  }
  after(ms: number, fire: () => void): { cancel(): void } {
    const timer = { at: this.#now + ms, fire, live: true };
    this.#timers.push(timer);
    return {
      cancel: () => {
        timer.live = false;
      },
    };
  }
  live(): number {
    return this.#timers.filter((timer) => timer.live).length;
  }
  async advance(ms: number): Promise<void> {
    const until = this.#now + ms;
    for (;;) {
      await settled();
      const due = this.#timers.filter((timer) => timer.live && timer.at <= until);
      const next = due.toSorted((a, b) => a.at - b.at)[0];
      if (next === undefined) {
        break;
      }
      this.#now = Math.max(this.#now, next.at);
      next.live = false;
      next.fire();
    }
    this.#now = until;
  }
}

const settled = async (): Promise<void> => {
  for (let i = 0; i < 50; i++) {
    await Promise.resolve();
  }
};

/** A target whose flights end when the test says so. */
class Target {
  readonly flights: {
    readonly items: readonly number[];
    land: () => void;
    fail: (error: unknown) => void;
  }[] = [];
  turn(): Turn<number, string> {
    return {
      send: (items) => {
        const { promise, resolve, reject } = Promise.withResolvers<readonly string[]>();
        this.flights.push({ items, land: () => resolve(items.map((n) => `r${n}`)), fail: reject });
        return promise;
      },
      waitUntil: () => {},
    };
  }
  items(): (readonly number[])[] {
    return this.flights.map((flight) => flight.items);
  }
}

function setUp(budgetBytes: number = limits.pendingBytesMax) {
  const clock = new TestClock();
  const budget = new PendingBudget(budgetBytes);
  const lane = new Lane<number, string>(clock, budget);
  const target = new Target();
  const submit = (n: number, bytes = 100, records = 1): Promise<string> =>
    lane.submit(n, { bytes, records }, target.turn());
  return { clock, budget, lane, target, submit };
}

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "no error",
    (error: unknown) => (error instanceof ForebayError ? error.code : String(error)),
  );

test("a request that finds the lane idle flies at once, and those that come meanwhile share the next flight", async () => {
  const { target, submit, clock, budget, lane } = setUp();
  const first = submit(1);
  const rest = [2, 3, 4].map((n) => submit(n));
  await settled();
  expect(target.items()).toEqual([[1]]);
  await clock.advance(50);
  expect(target.items()).toEqual([[1]]);
  target.flights[0]?.land();
  await settled();
  expect(target.items()).toEqual([[1], [2, 3, 4]]);
  target.flights[1]?.land();
  expect(await Promise.all([first, ...rest])).toEqual(["r1", "r2", "r3", "r4"]);
  expect(budget.heldBytes).toBe(0);
  expect(lane.stats()).toEqual({
    requests: 4,
    flights: 2,
    flownRequests: 4,
    flownBytes: 400,
    lostFlights: 0,
    abandoned: 0,
    queued: 0,
    inFlight: 0,
  });
  expect(clock.live()).toBe(0);
});

test("after a short flight the queue waits until its oldest is flushAgeMs old", async () => {
  const { target, submit, clock } = setUp();
  void submit(1);
  await settled();
  void submit(2);
  await clock.advance(1);
  target.flights[0]?.land();
  await settled();
  expect(target.items()).toEqual([[1]]);
  await clock.advance(limits.flushAgeMs - 2);
  expect(target.items()).toEqual([[1]]);
  await clock.advance(1);
  expect(target.items()).toEqual([[1], [2]]);
});

test("a batch closes at its bytes and at its records, and a large request flies alone in its place", async () => {
  const { target, submit, clock } = setUp();
  void submit(0);
  await settled();
  void submit(1, limits.batchBytesTarget - 100);
  void submit(2, 100);
  void submit(3, 1);
  void submit(4, limits.bodyBytesMax);
  void submit(5, 1, limits.batchRecordsMax);
  void submit(6, 1, 1);
  for (let flight = 0; flight < 6; flight++) {
    await clock.advance(50);
    target.flights[flight]?.land();
    await settled();
  }
  expect(target.items()).toEqual([[0], [1, 2], [3], [4], [5], [6]]);
});

test("a full batch does not linger", async () => {
  const { target, submit } = setUp();
  void submit(1);
  await settled();
  void submit(2, limits.batchBytesTarget);
  target.flights[0]?.land();
  await settled();
  expect(target.items()).toEqual([[1], [2]]);
});

test("what waits and flies is bounded: 503 edge_overloaded, and the place comes back after landing", async () => {
  const { target, submit, lane } = setUp(250);
  const first = submit(1);
  const second = submit(2);
  expect(await codeOf(submit(3))).toBe("edge_overloaded");
  target.flights[0]?.land();
  await first;
  void submit(4);
  target.flights[1]?.land();
  expect(lane.stats().requests).toBe(3);
  void second;
});

test("a failed flight is the outcome of its own batch only", async () => {
  const { target, submit, clock, budget } = setUp();
  const first = submit(1);
  await settled();
  const second = submit(2);
  target.flights[0]?.fail(new ForebayError("origin_unreachable", "down"));
  expect(await codeOf(first)).toBe("origin_unreachable");
  await clock.advance(20);
  target.flights[1]?.fail(new TypeError("boom"));
  expect(await codeOf(second)).toBe("outcome_unknown");
  expect(budget.heldBytes).toBe(0);
});

test("a waiter gives up after batchWaitMsMax: flown outcome_unknown, never sent edge_overloaded", async () => {
  const { target, submit, clock, budget, lane } = setUp();
  const flown = codeOf(submit(1));
  await settled();
  const unsent = codeOf(submit(2));
  await clock.advance(limits.batchWaitMsMax);
  expect(await flown).toBe("outcome_unknown");
  expect(await unsent).toBe("edge_overloaded");
  expect(lane.stats()).toMatchObject({ abandoned: 2, queued: 0, inFlight: 1, flights: 1 });
  expect(budget.heldBytes).toBe(100);
  target.flights[0]?.land();
  await settled();
  expect(budget.heldBytes).toBe(0);
});

test("a flight whose context died frees the lane for the next request", async () => {
  const { target, submit, clock, budget, lane } = setUp();
  const lost = codeOf(submit(1));
  await clock.advance(flightMsMax);
  expect(await lost).toBe("outcome_unknown");
  await clock.advance(1);
  const next = submit(2);
  await settled();
  expect(target.items()).toEqual([[1], [2]]);
  target.flights[1]?.land();
  expect(await next).toBe("r2");
  expect(lane.stats()).toMatchObject({ lostFlights: 1, inFlight: 0 });
  target.flights[0]?.land();
  await settled();
  expect(budget.heldBytes).toBe(0);
});

test("waiters whose wake never ran are replaced by any later one's own timer", async () => {
  const { target, clock, lane } = setUp();
  const dead: Turn<number, string> = { send: () => new Promise(() => {}), waitUntil: () => {} };
  const first = lane.submit(1, { bytes: 1, records: 1 }, target.turn());
  await settled();
  const second = codeOf(lane.submit(2, { bytes: 1, records: 1 }, dead));
  const third = lane.submit(3, { bytes: 1, records: 1 }, target.turn());
  target.flights[0]?.land();
  await first;
  await clock.advance(20);
  expect(lane.stats().inFlight).toBe(2);
  await clock.advance(limits.batchWaitMsMax);
  expect(await codeOf(third)).toBe("outcome_unknown");
  expect(await second).toBe("outcome_unknown");
});
