import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { Hono, type Context as HonoContext } from "hono";
import type { Registry } from "prom-client";
import { ForebayError } from "../../shared/errors/mod.ts";
import {
  controlPrefix,
  framesPath,
  ingestPrefix,
  streamPrefix,
} from "../../shared/protocol/mod.ts";
import type { Exchange } from "./exchange.ts";
import { livez, readyz } from "./health.ts";
import { ingest } from "./ingest.ts";
import { createStream, removeStream } from "./lifecycle.ts";
import { listStreams } from "./listing.ts";
import { metricsReply } from "./metrics.ts";
import { headStream, readStream, type ReadAnswer } from "./read.ts";
import { problemReply, type Reply } from "./reply.ts";
import { subscriptions } from "./subscriptions.ts";

export interface AppEnv {
  Bindings: { readonly exchange: Exchange };
}

type Handler = (exchange: Exchange) => ReadAnswer | Promise<ReadAnswer>;
type App = Hono<AppEnv>;

/** Everything but the two hot paths (append.ts, frames.ts). */
export function createApp(registry: Registry): App {
  // The raw target decides, not the URL that a Request makes of it by resolving dot segments (P14).
  const app: App = new Hono<AppEnv>({
    getPath: (_request, options) => options?.env?.exchange.target.path ?? "/",
  });
  app.on(["GET", "PUT", "POST", "DELETE"], `${controlPrefix}*`, serve(subscriptions));
  app.get(`${streamPrefix}*`, serve(readOrHead));
  app.put(`${streamPrefix}*`, serve(createStream));
  app.delete(`${streamPrefix}*`, serve(removeStream));
  app.post(`${ingestPrefix}*`, serve(ingest));
  app.get("/v1/streams", serve(listStreams));
  app.get("/livez", serve(livez));
  app.get("/readyz", serve(readyz));
  app.get(
    "/metrics",
    serve((exchange) => metricsReply(exchange, registry)),
  );
  app.options("*", serve(preflight));
  app.notFound((c) => response(c.env.exchange, nothingHere(c.env.exchange)));
  app.onError((error, c) => {
    if (error instanceof ForebayError) {
      return response(c.env.exchange, problemReply(error));
    }
    throw error;
  });
  return app;
}

function serve(handler: Handler): (c: HonoContext<AppEnv>) => Promise<Response> {
  return async function answer(c) {
    const { exchange } = c.env;
    const reply = await handler(exchange);
    return reply === RESPONSE_ALREADY_SENT
      ? RESPONSE_ALREADY_SENT
      : response(exchange, reply as Reply);
  };
}

/** A reply as the Response that node-server writes. */
export function response(exchange: Exchange, reply: Reply): Response {
  exchange.context.counters.answered(exchange.route, reply.status);
  const flat = exchange.headersOf(reply);
  const headers: Record<string, string> = {};
  for (let i = 0; i + 1 < flat.length; i += 2) {
    headers[flat[i] as string] = flat[i + 1] as string;
  }
  return new Response(reply.body, { status: reply.status, headers });
}

/** Hono routes HEAD to the handler of GET. */
function readOrHead(exchange: Exchange): Promise<ReadAnswer> {
  return exchange.channel.method === "HEAD" ? headStream(exchange) : readStream(exchange);
}

/** Of a path, or of the server as a whole: `*` (RFC 9110 §9.3.7). */
export function preflight(exchange: Exchange): Reply {
  exchange.route = "preflight";
  const headers = [...exchange.context.web.forPreflight(exchange.head.get("origin"))];
  headers.push("allow", allowedMethods(exchange.target.path) ?? "OPTIONS");
  return { status: 204, headers, body: null };
}

/** Methods a path knows, or null for a path nobody serves. */
export function allowedMethods(path: string): string | null {
  if (path.startsWith(streamPrefix) || path === "*") {
    return "GET, HEAD, POST, PUT, DELETE, OPTIONS";
  }
  if (path.startsWith(ingestPrefix) || path === framesPath) {
    return "POST, OPTIONS";
  }
  return ["/v1/streams", "/livez", "/readyz", "/metrics"].includes(path)
    ? "GET, HEAD, OPTIONS"
    : null;
}

function nothingHere(exchange: Exchange): Reply {
  const path = exchange.target.path.slice(0, 200);
  const allow = allowedMethods(exchange.target.path);
  if (allow === null) {
    const message = `nothing is served at ${JSON.stringify(path)}; streams are at ${streamPrefix}<path>`;
    return problemReply(new ForebayError("not_found", message));
  }
  const message = `${exchange.channel.method} is not allowed at ${JSON.stringify(path)}, only ${allow}`;
  return problemReply(new ForebayError("method_not_allowed", message, { headers: { allow } }));
}
