import { ForebayError } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import type { Clock } from "../../shared/ports/mod.ts";

/** An answer as plain data, which any request may hold. */
interface Landed {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Uint8Array<ArrayBuffer>;
}

interface Flight {
  readonly startedAt: number;
  readonly waiters: Set<(outcome: Landed | Error) => void>;
}

/** What of a request a flight needs. */
export interface Passenger {
  readonly waitUntil: (work: Promise<unknown>) => void;
  /** Asks the origin. */
  readonly ask: () => Promise<Response>;
}

/**
 * A request joins one that asks the same only so soon after it: an eighth of the shortest sliding TTL, since the
 * origin counts the reader that asked as the stream's use, and not those that joined (P4).
 */
export const joinMsMax = 125;
/** Longer than any flight. Then the request that made it is gone without a word. */
const flightMsMax = limits.batchWaitMsMax + limits.longPollMs + 2000;

/**
 * Readers that wait at the same tail ask the origin once: after each append all of them come back at the same moment.
 *
 * The first one asks, under its own `waitUntil`, so that it asks on when its client goes away. Each other one owns the
 * promise it sleeps on and the timer that ends the sleep; what comes to it are plain bytes, as in the batcher (DECISIONS.md).
 * A reader that nobody joined gets the origin's answer as it streams in.
 */
export class Collapse {
  readonly #clock: Clock;
  readonly #flights = new Map<string, Flight>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @throws what `ask` throws; a request that joined gets the same error */
  async answer(key: string, passenger: Passenger): Promise<Response> {
    const now = this.#clock.now();
    const flight = this.#flights.get(key);
    if (flight === undefined || now - flight.startedAt > joinMsMax) {
      return await this.#fly(key, { startedAt: now, waiters: new Set() }, passenger);
    }
    const outcome = await this.#join(flight);
    if (outcome === null) {
      return await passenger.ask();
    }
    if (outcome instanceof Error) {
      throw outcome;
    }
    return responseOf(outcome);
  }

  async #fly(key: string, flight: Flight, { ask, waitUntil }: Passenger): Promise<Response> {
    this.#flights.set(key, flight);
    const landing = this.#land(key, flight, ask);
    waitUntil(landing.catch(() => {}));
    return await landing;
  }

  async #land(key: string, flight: Flight, ask: () => Promise<Response>): Promise<Response> {
    try {
      const response = await ask();
      this.#leave(key, flight);
      if (flight.waiters.size === 0) {
        return response;
      }
      const body = new Uint8Array(await response.arrayBuffer());
      const landed = { status: response.status, headers: [...response.headers], body };
      settle(flight, landed);
      return responseOf(landed);
    } catch (error) {
      this.#leave(key, flight);
      const cause = error instanceof Error ? error : new Error(String(error));
      settle(flight, error instanceof ForebayError ? error : lost(cause));
      throw error;
    }
  }

  /** Nobody joins any more. A later flight may stand in this one's place. */
  #leave(key: string, flight: Flight): void {
    if (this.#flights.get(key) === flight) {
      this.#flights.delete(key);
    }
  }

  /** What the flight brought, or null when it never came back. */
  async #join({ waiters }: Flight): Promise<Landed | Error | null> {
    const { promise, resolve } = Promise.withResolvers<Landed | Error | null>();
    waiters.add(resolve);
    // Made and cancelled here: a timer belongs to its own request.
    const timer = this.#clock.after(flightMsMax, () => resolve(null));
    const outcome = await promise;
    timer.cancel();
    waiters.delete(resolve);
    return outcome;
  }
}

function settle(flight: Flight, outcome: Landed | Error): void {
  for (const waiter of flight.waiters) {
    waiter(outcome);
  }
  flight.waiters.clear();
}

function responseOf({ status, headers, body }: Landed): Response {
  const fields = new Headers();
  for (const [name, value] of headers) {
    fields.append(name, value);
  }
  return new Response(status === 204 || status === 304 ? null : body, { status, headers: fields });
}

function lost(cause: Error): ForebayError {
  const message = `the origin's answer broke off (${cause.message})`;
  return new ForebayError("origin_unreachable", message, { cause });
}
