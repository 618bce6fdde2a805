import { streamPrefix } from "../../shared/protocol/mod.ts";
import type { Call } from "./call.ts";
import type { Services } from "./services.ts";

/** Creation and deletion (with the key) and reads (open to all, as at the origin) of one stream. */
export async function passOn(call: Call, services: Services): Promise<Response> {
  const path = streamPrefix + call.stream(streamPrefix);
  const reads = call.request.method === "GET" || call.request.method === "HEAD";
  if (!reads) {
    call.authorize();
  }
  const body = reads ? null : await call.body();
  return await services.reader.forward(call.toOrigin(path, body));
}

/** The list of streams: a plain path, nothing to normalise. */
export async function listStreams(call: Call, services: Services): Promise<Response> {
  return await services.reader.forward(call.toOrigin(call.after(""), null));
}
