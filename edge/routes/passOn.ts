import { ForebayError } from "../../shared/errors/mod.ts";
import { header, parseAck, streamPrefix } from "../../shared/protocol/mod.ts";
import type { Call } from "./call.ts";
import type { Services } from "./services.ts";

/** Creation and deletion (with the key) and reads (open to all, as at the origin) of one stream. */
export async function passOn(call: Call, services: Services): Promise<Response> {
  const path = streamPrefix + call.stream(streamPrefix);
  const reads = call.request.method === "GET" || call.request.method === "HEAD";
  if (!reads) {
    call.authorize();
    refuseWeakerAck(call);
  }
  const body = reads ? null : await call.body();
  return await services.reader.forward(call.toOrigin(path, body));
}

/** @throws ForebayError `ack_unavailable`: only the origin can say whether a stream was made or removed */
function refuseWeakerAck(call: Call): void {
  const ack = parseAck(call.query("ack"), call.header(header.ack), "origin");
  if (ack !== "origin") {
    throw new ForebayError(
      "ack_unavailable",
      `${call.request.method} goes with ack=origin, not ack=${ack}`,
    );
  }
}

/** The list of streams: a plain path, nothing to normalise. */
export async function listStreams(call: Call, services: Services): Promise<Response> {
  return await services.reader.forward(call.toOrigin(call.after(""), null));
}
