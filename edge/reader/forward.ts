import { ForebayError } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import type { Clock } from "../../shared/ports/mod.ts";
import { type OriginLink, type OriginReach, reason, unreachable } from "../uplink/mod.ts";
import { Collapse } from "./collapse.ts";
import { requestFields, responseFields } from "./fields.ts";

/** One request to be answered by the origin. */
export interface Forwarding {
  readonly request: Request;
  /** Normalised path and the query as it came, `?` included, without the key. */
  readonly target: string;
  /** A body already read and counted, or null. */
  readonly body: Uint8Array<ArrayBuffer> | null;
  readonly link: OriginLink;
  /** The client has shown the key. What it sends goes with the edge's own; what others ask for is asked without. */
  readonly keyed: boolean;
  readonly waitUntil: (work: Promise<unknown>) => void;
  /** Fields that go in place of the client's, or besides them. */
  readonly fields?: Readonly<Record<string, string>>;
}

const longPoll = /[?&]live=long-poll(?:&|$)/;

/** The longest wait for an answer's header, a long-poll's time on top if it is live. The body may take as long as it likes. */
const headerMsMax = limits.batchWaitMsMax;

/** Passes requests to the origin and streams the answers back, unbuffered and uncached. Equal long-polls ask once. */
export class Reader {
  readonly #collapse: Collapse;
  readonly #clock: Clock;
  readonly #reach: OriginReach;

  constructor(clock: Clock, reach: OriginReach) {
    this.#clock = clock;
    this.#reach = reach;
    this.#collapse = new Collapse(clock);
  }

  /**
   * The origin's answer, its status, ETag and body unchanged. When the client goes away the runtime cancels the body and
   * with it the request to the origin.
   *
   * @throws ForebayError `origin_unreachable`; for a method that changes something `outcome_unknown` once it was sent
   */
  async forward(forwarding: Forwarding): Promise<Response> {
    const { request, target, link, keyed, waitUntil } = forwarding;
    if (request.method !== "GET" || keyed || !longPoll.test(target)) {
      return await this.#ask(forwarding);
    }
    const ask = (): Promise<Response> => this.#ask(forwarding);
    return await this.#collapse.answer(link.url + target, { ask, waitUntil });
  }

  async #ask({ request, target, body, link, keyed, fields = {} }: Forwarding): Promise<Response> {
    const safe = request.method === "GET" || request.method === "HEAD";
    if (!safe) {
      await this.#reach.ensure(link);
    }
    const waitMs = headerMsMax + (/[?&]live=/.test(target) ? limits.longPollMs : 0);
    const upstream = await this.#answered(safe, waitMs, (signal) =>
      fetch(link.url + target, {
        method: request.method,
        headers: requestFields(request.headers, keyed ? link.key : null, fields),
        body: body === null || body.length === 0 ? null : body,
        redirect: "manual",
        cache: "no-store",
        signal,
      }),
    );
    this.#reach.heard();
    const headers = responseFields(upstream.headers, link.url, new URL(request.url).origin);
    if (upstream.status === 204 || upstream.status === 304 || request.method === "HEAD") {
      await upstream.body?.cancel();
      return new Response(null, { status: upstream.status, headers });
    }
    return new Response(upstream.body, { status: upstream.status, headers });
  }

  async #answered(
    safe: boolean,
    waitMs: number,
    send: (signal: AbortSignal) => Promise<Response>,
  ): Promise<Response> {
    const abort = new AbortController();
    const timer = this.#clock.after(waitMs, () => {
      abort.abort(new Error(`no answer within ${waitMs} ms`));
    });
    try {
      return await send(abort.signal);
    } catch (error) {
      this.#reach.lost();
      throw safe ? unreachable(error) : unknownOutcome(error);
    } finally {
      timer.cancel();
    }
  }
}

function unknownOutcome(cause: unknown): ForebayError {
  return new ForebayError("outcome_unknown", `the origin's reply was lost (${reason(cause)})`, {
    cause,
  });
}
