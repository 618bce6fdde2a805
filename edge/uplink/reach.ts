import { ForebayError } from "../../shared/errors/mod.ts";
import type { Clock } from "../../shared/ports/mod.ts";

/** How to reach the origin: base URL without a trailing slash, and the edge's own key. */
export interface OriginLink {
  readonly url: string;
  readonly key: string | null;
}

/** An origin not heard of for this long is asked first. */
const freshMs = 5000;
const probeMsMax = 2000;

/**
 * Whether the origin was heard of lately, per isolate.
 *
 * workerd's fetch says "Network connection lost" for a refused connection and for a reply that never came, so after
 * the fact nobody can tell "nothing was sent" from "perhaps stored". This can: while the origin is in doubt (never heard
 * of, last exchange failed, or silent for `freshMs`) an empty request goes before the bytes of a write, and if that
 * fails nothing was sent. A busy or live edge pays nothing; after a pause the probe also pays for the new connection.
 */
export class OriginReach {
  readonly #clock: Clock;
  #heardAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  heard(): void {
    this.#heardAt = this.#clock.now();
  }

  lost(): void {
    this.#heardAt = Number.NEGATIVE_INFINITY;
  }

  /** @throws ForebayError `origin_unreachable`: no byte of the write has left */
  async ensure(link: OriginLink): Promise<void> {
    if (this.#clock.now() - this.#heardAt < freshMs) {
      return;
    }
    try {
      const response = await fetch(`${link.url}/livez`, {
        redirect: "manual",
        signal: AbortSignal.timeout(probeMsMax),
      });
      await response.body?.cancel();
    } catch (error) {
      throw unreachable(error);
    }
    this.heard();
  }
}

export function unreachable(cause: unknown): ForebayError {
  return new ForebayError(
    "origin_unreachable",
    `the origin cannot be reached (${reason(cause)}); nothing was stored`,
    {
      cause,
    },
  );
}

/** The runtime's words for a failure, without its internal reference numbers. */
export function reason(error: unknown): string {
  return error instanceof Error ? error.message.replace(/; reference = \w+/, "") : String(error);
}
