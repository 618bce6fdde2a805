import { Hono, type Context } from "hono";
import { ForebayError } from "../../shared/errors/mod.ts";
import type { Clock } from "../../shared/ports/mod.ts";
import {
  acksPrefix,
  controlPrefix,
  corsHeaders,
  ingestPrefix,
  loopbackOrigins,
  preflightHeaders,
  securityHeaders,
  streamPrefix,
  type AllowedOrigins,
} from "../../shared/protocol/mod.ts";
import { append } from "./append.ts";
import { drainBody } from "./body.ts";
import { Call } from "./call.ts";
import { settingsOf, type Env } from "./env.ts";
import { livez, readyz } from "./health.ts";
import { ingest } from "./ingest.ts";
import { acks, outboxDeed, outboxes, outboxesPrefix, outboxView } from "./outboxes.ts";
import { listStreams, passOn } from "./passOn.ts";
import { problemReply } from "./reply.ts";
import { createServices, type Services } from "./services.ts";
import { subscriptions } from "./subscriptions.ts";

type Handler = (call: Call, services: Services) => Response | Promise<Response>;

const streamsPath = "/v1/streams";
const outboxesPath = outboxesPrefix.slice(0, -1);

/** What workerd calls for each request. */
export interface EdgeHandler {
  fetch(request: Request, env: Env, context: ExecutionContext): Promise<Response>;
}

/** The Worker's fetch handler: routes, then the fields every answer has. */
export function createEdge(clock: Clock): EdgeHandler {
  const app = createRoutes(createServices(clock));
  return {
    async fetch(request, env, context) {
      const response = await app.fetch(request, env, context);
      await drainBody(request);
      return secured(response, request.headers.get("origin"), webOriginsOf(env));
    },
  };
}

function createRoutes(services: Services): Hono<{ Bindings: Env }> {
  // The undecoded path: what comes after the prefix is normalised by the handlers, once.
  const app = new Hono<{ Bindings: Env }>({ getPath: (request) => new URL(request.url).pathname });
  const serve = (handler: Handler) => (c: Context<{ Bindings: Env }>) =>
    answer(c, services, handler);
  app.options("*", serve(preflight));
  app.on(["GET", "PUT", "POST", "DELETE"], `${controlPrefix}*`, serve(subscriptions));
  app.post(`${streamPrefix}*`, serve(append));
  app.on(["GET", "PUT", "DELETE"], `${streamPrefix}*`, serve(passOn));
  app.get(streamsPath, serve(listStreams));
  app.post(`${ingestPrefix}*`, serve(ingest));
  app.get(`${acksPrefix}*`, serve(acks));
  app.get(outboxesPath, serve(outboxes));
  app.get(`${outboxesPrefix}*`, serve(outboxView));
  app.post(`${outboxesPrefix}*`, serve(outboxDeed));
  app.get("/livez", () => livez());
  app.get("/readyz", serve(readyz));
  app.notFound((c) => problemReply(wrongTurn(c.req.raw)));
  app.onError((error) => problemReply(error));
  return app;
}

async function answer(
  context: Context<{ Bindings: Env }>,
  services: Services,
  handler: Handler,
): Promise<Response> {
  const call = new Call(context, services.bodies);
  try {
    return await handler(call, services);
  } finally {
    call.end();
  }
}

function preflight(call: Call): Response {
  const headers = preflightHeaders(call.header("origin"), call.settings.webOrigins);
  const allow = allowedMethods(call.after("")) ?? "OPTIONS";
  return new Response(null, { status: 204, headers: { ...headers, allow } });
}

/** Methods a path knows, or null for a path nobody serves. */
function allowedMethods(path: string): string | null {
  if (path.startsWith(streamPrefix)) {
    return "GET, HEAD, POST, PUT, DELETE, OPTIONS";
  }
  if (path.startsWith(ingestPrefix)) {
    return "POST, OPTIONS";
  }
  if (path.startsWith(outboxesPrefix)) {
    return "GET, HEAD, POST, OPTIONS";
  }
  const reads = ["/livez", "/readyz", streamsPath, outboxesPath];
  return path.startsWith(acksPrefix) || reads.includes(path) ? "GET, HEAD, OPTIONS" : null;
}

function wrongTurn(request: Request): ForebayError {
  const { pathname } = new URL(request.url);
  const shown = JSON.stringify(pathname.slice(0, 200));
  const allow = allowedMethods(pathname);
  return allow === null
    ? new ForebayError(
        "not_found",
        `nothing is served at ${shown}; streams are at ${streamPrefix}<path>`,
      )
    : new ForebayError(
        "method_not_allowed",
        `${request.method} is not allowed at ${shown}, only ${allow}`,
        {
          headers: { allow },
        },
      );
}

/** A broken configuration still answers pages of this machine, so that its fault can be read there. */
function webOriginsOf(env: Env): AllowedOrigins {
  try {
    return settingsOf(env).webOrigins;
  } catch {
    return loopbackOrigins;
  }
}

function secured(response: Response, origin: string | null, allowed: AllowedOrigins): Response {
  const cors = corsHeaders(origin, allowed) ?? { vary: "Origin" };
  for (const [name, value] of Object.entries({ ...securityHeaders, ...cors })) {
    if (name !== "vary" || !/\borigin\b/i.test(response.headers.get("vary") ?? "")) {
      response.headers[name === "vary" ? "append" : "set"](name, value);
    }
  }
  return response;
}
