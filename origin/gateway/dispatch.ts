import type { ServerResponse } from "node:http";
import { getRequestListener } from "@hono/node-server";
import type { Hono } from "hono";
import { ForebayError, problemContentType, problemJson } from "../../shared/errors/mod.ts";
import { securityHeaders, streamPrefix } from "../../shared/protocol/mod.ts";
import { isHotTarget, type Channel, type NodeChannel } from "../front/mod.ts";
import { preflight, type AppEnv } from "./app.ts";
import { Append } from "./append.ts";
import type { Context } from "./context.ts";
import { Exchange } from "./exchange.ts";
import { Frames } from "./frames.ts";

/** The one place where a request goes its way: appends and frames at once, the rest through Hono. */
export class Dispatch {
  readonly #context: Context;
  readonly #throughHono: (
    request: NodeChannel["request"],
    response: ServerResponse,
  ) => Promise<void>;
  /** Of the requests on their way through Hono. */
  readonly #exchanges = new WeakMap<object, Exchange>();

  constructor(context: Context, app: Hono<AppEnv>) {
    this.#context = context;
    const fetchApp = (request: Request, env: { incoming: object }): Response | Promise<Response> =>
      app.fetch(request, { exchange: this.#exchanges.get(env.incoming) as Exchange });
    this.#throughHono = getRequestListener(fetchApp, {
      // Bodies are taken or drained here, with a bound.
      autoCleanupIncoming: false,
      // Host is judged in exchange.ts, for every route alike, and taken out of node-server's sight.
      hostname: "localhost",
      errorHandler: badTarget,
    }) as (request: NodeChannel["request"], response: ServerResponse) => Promise<void>;
  }

  /** Any request, by node:http. */
  onRequest(channel: NodeChannel): void {
    if (channel.method === "POST" && isHotTarget(channel.url)) {
      this.onHot(channel);
    } else {
      const exchange = new Exchange(this.#context, channel);
      try {
        exchange.checkShape();
        if (channel.method === "OPTIONS" && channel.url === "*") {
          exchange.send(preflight(exchange));
        } else {
          this.#passOn(channel, exchange);
        }
      } catch (error) {
        refuse(exchange, error);
      }
    }
    channel.drainUntaken();
  }

  #passOn({ request, response }: NodeChannel, exchange: Exchange): void {
    delete request.headers.host;
    this.#exchanges.set(request, exchange);
    void this.#throughHono(request, response);
  }

  /** A POST to a stream or of frames, by whatever channel. */
  onHot(channel: Channel): void {
    const hot = channel.url.startsWith(streamPrefix)
      ? new Append(this.#context, channel)
      : new Frames(this.#context, channel);
    try {
      hot.begin();
    } catch (error) {
      refuse(hot, error);
    }
  }
}

/** Programmer errors go on and end the process. */
function refuse(exchange: Exchange<Channel>, error: unknown): void {
  if (!(error instanceof ForebayError)) {
    throw error;
  }
  exchange.refuse(error);
}

/**
 * What node-server refuses before Hono sees it (a backslash in the path, a target of another form). Anything else that
 * comes here is a programmer error: it ends the process instead of hiding in a 500.
 */
function badTarget(error: unknown): Response {
  if (error instanceof Error && error.name === "RequestError") {
    const detail = `the request's target is not acceptable: ${error.message}`;
    const headers = { ...securityHeaders, "content-type": problemContentType };
    return new Response(problemJson("bad_request", detail), { status: 400, headers });
  }
  process.nextTick(() => {
    throw error;
  });
  return new Response(null, { status: 500 });
}
