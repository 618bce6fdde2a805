import { ForebayError } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import { normalizeStreamPath, streamPrefix } from "../../shared/protocol/mod.ts";
import { utf8Bytes } from "../../shared/utf8/mod.ts";

const actions = ["claim", "callback", "ack", "release"] as const;
export type Action = (typeof actions)[number];

/** What a request below `/v1/stream/__ds/` is about. */
export type ControlRoute =
  | { readonly kind: "jwks" }
  | { readonly kind: "subscription"; readonly id: string }
  | { readonly kind: "streams"; readonly id: string }
  | { readonly kind: "stream"; readonly id: string; readonly path: string }
  | { readonly kind: "action"; readonly id: string; readonly action: Action };

export const methodsOf: Readonly<Record<ControlRoute["kind"], string>> = {
  jwks: "GET, HEAD, OPTIONS",
  subscription: "GET, HEAD, PUT, DELETE, OPTIONS",
  streams: "POST, OPTIONS",
  stream: "DELETE, OPTIONS",
  action: "POST, OPTIONS",
};

/**
 * The route of a raw path, normalised as stream paths are (P14): an encoded slash is a slash.
 *
 * @returns null for what nobody serves
 * @throws ForebayError `bad_path`
 */
export function controlRoute(path: string): ControlRoute | null {
  const [, kind, id, verb, ...rest] = normalizeStreamPath(path.slice(streamPrefix.length)).split(
    "/",
  );
  if (kind === "jwks.json" && id === undefined) {
    return { kind: "jwks" };
  }
  if (kind !== "subscriptions" || id === undefined) {
    return null;
  }
  return routeOf(idOf(id), verb, rest);
}

function routeOf(
  id: string,
  verb: string | undefined,
  rest: readonly string[],
): ControlRoute | null {
  if (verb === "streams" && rest.length > 0) {
    return { kind: "stream", id, path: rest.join("/") };
  }
  if (rest.length > 0) {
    return null;
  }
  if (verb === undefined) {
    return { kind: "subscription", id };
  }
  if (verb === "streams") {
    return { kind: "streams", id };
  }
  const action = actions.find((each) => each === verb);
  return action === undefined ? null : { kind: "action", id, action };
}

function idOf(segment: string): string {
  const id = decodeURIComponent(segment);
  const bytes = utf8Bytes(id).length;
  if (bytes > limits.subscriptionIdBytesMax) {
    const message = `the subscription's id has ${bytes} bytes, at most ${limits.subscriptionIdBytesMax}`;
    throw new ForebayError("bad_path", message);
  }
  return id;
}
