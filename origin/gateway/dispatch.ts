import type { ServerResponse } from "node:http";
import { getRequestListener } from "@hono/node-server";
import type { Hono } from "hono";
import { ForebayError, problemContentType, problemJson } from "../../shared/errors/mod.ts";
import { framesPath, securityHeaders, streamPrefix } from "../../shared/protocol/mod.ts";
import type { AppEnv } from "./app.ts";
import { Append } from "./append.ts";
import type { Context } from "./context.ts";
import { Exchange } from "./exchange.ts";
import { Frames } from "./frames.ts";
import type { ForebayIncoming } from "./incoming.ts";
import { originForm } from "./target.ts";

/** What the two hot paths have in common. */
interface HotExchange extends Exchange {
  begin(): void;
}

/** The one place where a request goes its way: appends and frames at once, the rest through Hono. */
export class Dispatch {
  readonly #context: Context;
  readonly #throughHono: (request: ForebayIncoming, response: ServerResponse) => Promise<void>;
  /** Of the requests on their way through Hono. */
  readonly #exchanges = new WeakMap<object, Exchange>();

  constructor(context: Context, app: Hono<AppEnv>) {
    this.#context = context;
    const fetchApp = (request: Request, env: { incoming: object }): Response | Promise<Response> =>
      app.fetch(request, { exchange: this.#exchanges.get(env.incoming) as Exchange });
    this.#throughHono = getRequestListener(fetchApp, {
      // Bodies are taken or drained here, with a bound.
      autoCleanupIncoming: false,
      // For HTTP/1.0, which may leave Host out; 1.1 may not (exchange.ts).
      hostname: "localhost",
      errorHandler: badTarget,
    }) as (request: ForebayIncoming, response: ServerResponse) => Promise<void>;
  }

  onRequest(request: ForebayIncoming, response: ServerResponse, expectsContinue: boolean): void {
    const url = originForm(request.url ?? "/");
    request.url = url;
    const hot = this.#hotExchange(request, response, expectsContinue);
    const exchange = hot ?? new Exchange(this.#context, request, response, expectsContinue);
    try {
      if (hot === null) {
        exchange.checkShape();
        this.#exchanges.set(request, exchange);
        void this.#throughHono(request, response);
      } else {
        hot.begin();
      }
    } catch (error) {
      if (!(error instanceof ForebayError)) {
        throw error;
      }
      exchange.refuse(error);
    }
    if (!exchange.bodyTaken) {
      request.drainBody();
    }
  }

  #hotExchange(
    request: ForebayIncoming,
    response: ServerResponse,
    expectsContinue: boolean,
  ): HotExchange | null {
    if (request.method !== "POST") {
      return null;
    }
    const url = request.url ?? "/";
    if (url.startsWith(streamPrefix)) {
      return new Append(this.#context, request, response, expectsContinue);
    }
    return url === framesPath || url.startsWith(`${framesPath}?`)
      ? new Frames(this.#context, request, response, expectsContinue)
      : null;
  }
}

/**
 * What node-server refuses before Hono sees it (a Host that is none, a backslash in the path). Anything else that
 * comes here is a programmer error: it ends the process instead of hiding in a 500.
 */
function badTarget(error: unknown): Response {
  if (error instanceof Error && error.name === "RequestError") {
    const detail = `the request's Host or target is not acceptable: ${error.message}`;
    const headers = { ...securityHeaders, "content-type": problemContentType };
    return new Response(problemJson("bad_request", detail), { status: 400, headers });
  }
  process.nextTick(() => {
    throw error;
  });
  return new Response(null, { status: 500 });
}
