import {
  header,
  normalizeStreamPath,
  parseFork,
  parseLifetime,
  streamPrefix,
} from "../../shared/protocol/mod.ts";
import { isTrue } from "./append.ts";
import { bodyOf } from "./body.ts";
import type { Exchange } from "./exchange.ts";
import { durable } from "./gate.ts";
import { loaded } from "./loaded.ts";
import { verdictReply, type Reply } from "./reply.ts";

/** `PUT /v1/stream/<path>`: creates a stream, empty or forked, or confirms that it is as asked for. */
export async function createStream(exchange: Exchange): Promise<Reply> {
  const { context, head, target } = exchange;
  exchange.route = "create";
  const path = normalizeStreamPath(target.path.slice(streamPrefix.length));
  exchange.checkWriter();
  const fork = parseFork({
    from: head.exact(header.forkedFrom),
    offset: head.exact(header.forkOffset),
    subOffset: head.exact(header.forkSubOffset),
  });
  const lifetime = parseLifetime(head.exact(header.ttl), head.exact(header.expiresAt));
  const body = await bodyOf(exchange, context.settings.bodyBytesMax);
  const verdict = await loaded(() =>
    context.streams.create({
      path,
      contentType: head.get("content-type"),
      fork,
      ...lifetime,
      closed: isTrue(head.get(header.closed)),
      body,
    }),
  );
  await durable(context.streams, verdict.lsn);
  const reply = verdictReply(verdict, context.durableAck);
  if (verdict.status !== 201) {
    return reply;
  }
  const location = `${baseOf(head.get("host"))}${streamPrefix}${path}`;
  return { ...reply, headers: [...reply.headers, "location", location] };
}

/** As the client names this server; one whose Host is not a plain host and port gets a path. */
function baseOf(host: string | null): string {
  return host !== null && /^[a-z0-9.[\]:-]+$/i.test(host) ? `http://${host}` : "";
}

/** `DELETE /v1/stream/<path>`. */
export async function removeStream(exchange: Exchange): Promise<Reply> {
  const { context, target } = exchange;
  exchange.route = "remove";
  const path = normalizeStreamPath(target.path.slice(streamPrefix.length));
  exchange.checkWriter();
  const verdict = context.streams.remove(path);
  await durable(context.streams, verdict.lsn);
  return verdictReply(verdict, context.durableAck);
}
