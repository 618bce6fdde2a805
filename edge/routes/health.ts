import { ForebayError } from "../../shared/errors/mod.ts";
import type { Call } from "./call.ts";
import { jsonReply } from "./reply.ts";
import type { Services } from "./services.ts";

const originMsMax = 2000;

/** The Worker runs. Says nothing about the origin. */
export function livez(): Response {
  return jsonReply(200, { status: "ok" });
}

/**
 * Ready when the origin says so of itself; what it says comes along, and this isolate's own counters.
 *
 * @throws ForebayError `origin_unreachable`
 */
export async function readyz(call: Call, services: Services): Promise<Response> {
  const { url } = call.settings.link;
  const response = await fetch(`${url}/readyz`, {
    redirect: "manual",
    cache: "no-store",
    signal: AbortSignal.timeout(originMsMax),
  }).catch((cause: unknown) => {
    throw new ForebayError(
      "origin_unreachable",
      `the origin did not answer within ${originMsMax} ms`,
      { cause },
    );
  });
  const origin = parsed(await response.text());
  const edge = { ...services.writers.stats(), unacknowledged: services.unacknowledged.stats() };
  return jsonReply(response.ok ? 200 : 503, {
    status: response.ok ? "ready" : "not ready",
    origin,
    edge,
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text.slice(0, 1000);
  }
}
