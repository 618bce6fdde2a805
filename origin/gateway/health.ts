import type { Exchange } from "./exchange.ts";
import { jsonReply, type Reply } from "./reply.ts";

/** `GET /livez`: the process answers. */
export function livez(exchange: Exchange): Reply {
  exchange.route = "health";
  return jsonReply(200, { status: "ok" });
}

/** `GET /readyz`: whether writes are taken, what holds them, and why not. */
export function readyz(exchange: Exchange): Reply {
  exchange.route = "health";
  const { context } = exchange;
  const { storage, storageReason, journalId, reserved, durable, journal, store } = context.status();
  const reason = journal.failed ?? journal.full ?? (context.closing ? "shutting down" : null);
  const body = {
    status: reason === null ? "ready" : "not ready",
    reason,
    ack: context.durableAck,
    storage,
    storageReason,
    journal: {
      id: journalId,
      state: journal.failed !== null ? "failed" : journal.full !== null ? "full" : "open",
      reserved,
      durable,
      segments: journal.segments,
      bytesHeld: journal.bytesHeld,
      budgetBytes: journal.budgetBytes,
    },
    store: {
      checkpointLsn: store.checkpointLsn,
      checkpointFailed: store.failed,
      runs: store.runs,
      runBytes: store.runBytes,
      arenaBytes: store.arenaBytes,
    },
    streams: context.streams.stats().streams,
  };
  return jsonReply(reason === null ? 200 : 503, body);
}
