import { ForebayError, problemHeaders, problemJson } from "../../shared/errors/mod.ts";
import {
  controlError,
  header,
  normalizeStreamPath,
  streamPrefix,
} from "../../shared/protocol/mod.ts";
import type { Call } from "./call.ts";
import type { Services } from "./services.ts";

/** What reports on a wake shows the wake's own token in place of the key. */
const byToken = /^__ds\/subscriptions\/[^/]+\/(?:callback|ack|release)$/;
const open = "__ds/jwks.json";

/**
 * Everything below `/v1/stream/__ds/`: the origin's to answer. It is told by which URL this edge was called, because
 * receivers of webhooks come back the same way.
 */
export async function subscriptions(call: Call, services: Services): Promise<Response> {
  try {
    const path = normalizeStreamPath(call.after(streamPrefix));
    const fields: Record<string, string> = { [header.publicUrl]: new URL(call.request.url).origin };
    if (byToken.test(path)) {
      call.checkWebOrigin();
      fields["authorization"] = tokenOf(call);
    } else if (path !== open) {
      call.authorize();
    }
    const { method } = call.request;
    const body = method === "GET" || method === "HEAD" ? null : await call.body();
    return await services.reader.forward({ ...call.toOrigin(streamPrefix + path, body), fields });
  } catch (error) {
    if (error instanceof ForebayError) {
      return refusal(error);
    }
    throw error;
  }
}

/** @throws ForebayError `bad_token` */
function tokenOf(call: Call): string {
  const token = call.header("authorization");
  if (token === null) {
    const message = "send the wake's token as Authorization: Bearer <token>";
    throw new ForebayError("bad_token", message);
  }
  return token;
}

/** With the protocol's `error` object, as the origin's own refusals. */
function refusal(error: ForebayError): Response {
  const { code, message, status } = error;
  const body = problemJson(code, message, controlError(code, message));
  return new Response(body, { status, headers: problemHeaders(error) });
}
