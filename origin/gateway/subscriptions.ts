import { bearerKey } from "../../shared/auth/mod.ts";
import { ForebayError, problemHeaders, problemJson } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import { controlError, header } from "../../shared/protocol/mod.ts";
import type { Loading } from "../stream/mod.ts";
import type { Answer } from "../subscription/mod.ts";
import { bodyOf } from "./body.ts";
import type { Exchange } from "./exchange.ts";
import { durable } from "./gate.ts";
import { loaded } from "./loaded.ts";
import { jsonReply, type Reply } from "./reply.ts";
import { definitionOf, fieldsOf, reportOf, streamsOf, workerOf } from "./subscriptionBody.ts";
import { type Action, type ControlRoute, controlRoute, methodsOf } from "./subscriptionRoute.ts";
import { flat } from "./webHeaders.ts";

/**
 * Everything below `/v1/stream/__ds/`: subscriptions and the keys of their signatures. Refusals are problem documents
 * that have the protocol's `error` object as well.
 */
export async function subscriptions(exchange: Exchange): Promise<Reply> {
  exchange.route = "subscriptions";
  try {
    const route = controlRoute(exchange.target.path);
    if (route === null) {
      const shown = JSON.stringify(exchange.target.path.slice(0, 200));
      throw new ForebayError("not_found", `nothing is served at ${shown}`);
    }
    return await serve(exchange, route);
  } catch (error) {
    if (error instanceof ForebayError) {
      return refusalReply(error);
    }
    throw error;
  }
}

async function serve(exchange: Exchange, route: ControlRoute): Promise<Reply> {
  const { method } = exchange.channel;
  if (!methodsOf[route.kind].split(", ").includes(method)) {
    const allow = methodsOf[route.kind];
    const message = `${method} is not allowed here, only ${allow}`;
    throw new ForebayError("method_not_allowed", message, { headers: { allow } });
  }
  if (route.kind === "jwks") {
    return await jwks(exchange);
  }
  const token = authorize(exchange, route);
  const fields = fieldsOf(
    method === "PUT" || method === "POST"
      ? await bodyOf(exchange, limits.subscriptionBodyBytesMax)
      : new Uint8Array(0),
  );
  const answer = await loaded(() => decide(exchange, route, { token, fields }));
  await durable(exchange.context.streams, answer.lsn);
  return answerReply(answer);
}

/** Management and claims need the key; what reports on a wake shows the wake's own token in its place. */
function authorize(exchange: Exchange, route: ControlRoute): string {
  if (route.kind !== "action" || route.action === "claim") {
    exchange.checkWriter();
    return "";
  }
  exchange.context.web.checkOrigin(exchange.head.get("origin"));
  const token = bearerKey(exchange.head.get("authorization"));
  if (token === null) {
    const message = "send the wake's token as Authorization: Bearer <token>";
    throw new ForebayError("bad_token", message);
  }
  return token;
}

interface Asked {
  readonly token: string;
  readonly fields: ReturnType<typeof fieldsOf>;
}

function decide(
  exchange: Exchange,
  route: ControlRoute,
  { token, fields }: Asked,
): Answer | Loading {
  const { subscriptions: them } = exchange.context;
  const { method } = exchange.channel;
  switch (route.kind) {
    case "subscription":
      if (method === "PUT") {
        return them.put(route.id, definitionOf(fields), publicUrlOf(exchange));
      }
      return method === "DELETE" ? them.remove(route.id) : them.get(route.id);
    case "streams":
      return them.addStreams(route.id, streamsOf(fields));
    case "stream":
      return them.removeStream(route.id, route.path);
    case "action":
      return act(exchange, { ...route, token, fields });
    case "jwks":
      throw new ForebayError("not_found", "the keys are answered before");
  }
}

function act(
  exchange: Exchange,
  { id, action, token, fields }: Asked & { readonly id: string; readonly action: Action },
): Answer | Loading {
  const { subscriptions: them } = exchange.context;
  if (action === "claim") {
    return them.claim(id, workerOf(fields));
  }
  return them[action](id, reportOf(token, fields));
}

/** Open to all: keys are public. An answer without one is not kept, the first key may come at any moment. */
async function jwks(exchange: Exchange): Promise<Reply> {
  const { subscriptions: them, streams } = exchange.context;
  const { keys, lsn } = them.jwks();
  await durable(streams, lsn);
  const cache = keys.length === 0 ? "no-store" : "public, max-age=300";
  return {
    status: 200,
    headers: ["content-type", "application/jwk-set+json", "cache-control", cache],
    body: JSON.stringify({ keys }),
  };
}

/** Where receivers find this service: as configured, as the edge says, or as the request itself was addressed. */
function publicUrlOf(exchange: Exchange): string {
  const { head, context } = exchange;
  const told = head.get(header.publicUrl) ?? `http://${head.get("host") ?? "localhost"}`;
  const text = context.settings.publicUrl ?? told;
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || text.length > limits.webhookUrlBytesMax) {
    const message = `${JSON.stringify(text.slice(0, 200))} is no URL that this service could be reached by`;
    throw new ForebayError("bad_header", message);
  }
  return url.origin;
}

function answerReply(answer: Answer): Reply {
  if (answer.kind === "refused") {
    return refusalReply(new ForebayError(answer.code, answer.detail), answer.members);
  }
  const { status, body } = answer;
  return body === null
    ? { status, headers: ["cache-control", "no-store"], body: null }
    : jsonReply(status, body);
}

function refusalReply(error: ForebayError, members: Readonly<Record<string, unknown>> = {}): Reply {
  const { status, code, message } = error;
  return {
    status,
    headers: flat(problemHeaders(error)),
    body: problemJson(code, message, controlError(code, message, members)),
  };
}
