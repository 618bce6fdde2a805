import { Counter, Gauge, Registry } from "prom-client";
import type { Context } from "./context.ts";
import type { Exchange } from "./exchange.ts";
import type { Reply } from "./reply.ts";

/** One number published under one name; read when somebody asks. */
interface Series {
  readonly name: string;
  readonly help: string;
  readonly kind: "counter" | "gauge";
  readonly read: (context: Context) => number;
}

const counter = (name: string, help: string, read: Series["read"]): Series => ({
  name: `forebay_${name}_total`,
  help,
  kind: "counter",
  read,
});
const gauge = (name: string, help: string, read: Series["read"]): Series => ({
  name: `forebay_${name}`,
  help,
  kind: "gauge",
  read,
});

const series: readonly Series[] = [
  counter("body_bytes_in", "Bytes of request bodies taken", (c) => c.counters.bodyBytesIn),
  counter("read_bytes_out", "Bytes of records answered", (c) => c.counters.readBytesOut),
  counter("unacknowledged", "Appends answered ack=none", (c) => c.counters.unacknowledged),
  counter(
    "unacknowledged_refused",
    "Appends answered ack=none and refused afterwards",
    (c) => c.counters.unacknowledgedRefused,
  ),
  counter("records_received", "Records that came to ingest", (c) => c.counters.recordsReceived),
  counter(
    "records_refused",
    "Records of ingest that were refused",
    (c) => c.counters.recordsRefused,
  ),
  counter("frames_received", "Frames that came in", (c) => c.counters.framesReceived),
  counter("frames_refused", "Frames answered NACK", (c) => c.counters.framesRefused),
  counter("sse_lagged", "Times an SSE reader fell behind the tail", (c) => c.counters.sseLagged),
  counter("records_stored", "Records stored", (c) => c.streams.stats().recordsStored),
  counter("bytes_stored", "Bytes of records stored", (c) => c.streams.stats().bytesStored),
  counter(
    "records_deduplicated",
    "Records not stored again",
    (c) => c.counters.recordsDeduplicated + c.streams.stats().recordsDeduplicated,
  ),
  counter(
    "records_quarantined",
    "Records put into quarantine",
    (c) => c.streams.stats().recordsQuarantined,
  ),
  counter("frames_applied", "Outbox frames applied", (c) => c.streams.stats().framesApplied),
  counter(
    "frames_replayed",
    "Outbox frames known already",
    (c) => c.streams.stats().framesReplayed,
  ),
  counter("journal_entries", "Entries written", (c) => c.status().journal.entries),
  counter("journal_batches", "Batches committed", (c) => c.status().journal.batches),
  counter("journal_syncs", "Synchronous writes", (c) => c.status().journal.syncs),
  counter("journal_bytes", "Bytes written to the journal", (c) => c.status().journal.bytesWritten),
  gauge("journal_failed", "1 when the journal failed", (c) =>
    c.status().journal.failed === null ? 0 : 1,
  ),
  gauge("journal_full", "1 when no space can be had", (c) =>
    c.status().journal.full === null ? 0 : 1,
  ),
  gauge("journal_held_bytes", "Bytes of segments held", (c) => c.status().journal.bytesHeld),
  gauge("journal_budget_bytes", "Bytes allowed", (c) => c.status().journal.budgetBytes),
  gauge("journal_segments", "Segments held", (c) => c.status().journal.segments),
  counter("store_checkpoints", "Checkpoints made", (c) => c.status().store.checkpoints),
  counter(
    "store_checkpoint_failures",
    "Checkpoints that failed and were tried again",
    (c) => c.status().store.checkpointFailures,
  ),
  counter("store_bytes_written", "Bytes written to runs", (c) => c.status().store.bytesWritten),
  counter("store_bytes_read", "Bytes read from runs", (c) => c.status().store.bytesRead),
  counter(
    "store_bytes_returned",
    "Bytes of records out of runs that readers got",
    (c) => c.status().store.bytesReturned,
  ),
  counter("store_bytes_hashed", "Bytes checked", (c) => c.status().store.bytesHashed),
  counter("store_damaged_records", "Damaged records met", (c) => c.status().store.damagedRecords),
  counter(
    "store_repaired_pages",
    "Pages read from their copy",
    (c) => c.status().store.repairedPages,
  ),
  gauge("store_checkpoint_failed", "1 when the newest checkpoint failed", (c) =>
    c.status().store.failed === null ? 0 : 1,
  ),
  gauge("store_runs", "Live runs", (c) => c.status().store.runs),
  gauge("store_run_bytes", "Bytes of live runs", (c) => c.status().store.runBytes),
  gauge("store_arena_bytes", "Bytes of records in memory", (c) => c.status().store.arenaBytes),
  gauge("lsn_checkpoint", "Highest LSN the store holds", (c) => c.status().store.checkpointLsn),
  gauge("lsn_reserved", "Highest LSN handed out", (c) => c.status().reserved),
  gauge("lsn_durable", "Highest LSN on the device", (c) => c.status().durable),
  gauge("streams", "Streams that exist", (c) => c.streams.stats().streams),
  gauge("producers", "Producers remembered", (c) => c.streams.stats().producers),
  gauge("gate_waiting", "Answers held by the output gate", (c) => c.streams.stats().waiting),
  gauge("subscriptions", "Subscriptions that exist", (c) => c.subscriptions.stats().subscriptions),
  gauge(
    "subscription_links",
    "Streams followed by subscriptions",
    (c) => c.subscriptions.stats().links,
  ),
  gauge("wakes_open", "Wakes not settled", (c) => c.subscriptions.stats().wakesOpen),
  gauge(
    "webhooks_in_flight",
    "Webhooks under way",
    (c) => c.subscriptions.stats().webhooksInFlight,
  ),
  gauge(
    "webhooks_waiting",
    "Webhooks that wait for a slot",
    (c) => c.subscriptions.stats().webhooksWaiting,
  ),
  counter(
    "webhooks_delivered",
    "Webhooks answered 2xx",
    (c) => c.subscriptions.stats().webhooksDelivered,
  ),
  counter("webhooks_failed", "Webhooks that failed", (c) => c.subscriptions.stats().webhooksFailed),
  counter(
    "subscription_streams_unlinked",
    "Matching streams that a limit kept out",
    (c) => c.subscriptions.stats().streamsUnlinked,
  ),
  gauge("followers", "Followers of streams", (c) => c.streams.stats().followers),
  gauge("requests_waiting", "Requests that wait", (c) => c.waiting),
  gauge("body_held_bytes", "Bytes of bodies being received", (c) => c.held.held),
];

/** The registry of one gateway. Counts live elsewhere as plain numbers; `collect` copies them when asked. */
export function metricsRegistry(context: Context): Registry {
  const registry = new Registry();
  const registers = [registry];
  for (const { name, help, kind, read } of series) {
    if (kind === "gauge") {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read(context));
        },
      });
    } else {
      new Counter({
        name,
        help,
        registers,
        collect() {
          this.reset();
          this.inc(read(context));
        },
      });
    }
  }
  new Gauge({
    name: "forebay_journal_storage",
    help: "1 for how the journal makes batches durable",
    labelNames: ["backend"],
    registers,
    collect() {
      this.reset();
      this.set({ backend: context.status().storage }, 1);
    },
  });
  new Counter({
    name: "forebay_requests_total",
    help: "Answers by route and class of status",
    labelNames: ["route", "status"],
    registers,
    collect() {
      this.reset();
      for (const [route, status, count] of context.counters.answers()) {
        this.inc({ route, status }, count);
      }
    },
  });
  return registry;
}

/** `GET /metrics` in the Prometheus text format. */
export async function metricsReply(exchange: Exchange, registry: Registry): Promise<Reply> {
  exchange.route = "metrics";
  const body = await registry.metrics();
  return {
    status: 200,
    headers: ["content-type", registry.contentType, "cache-control", "no-store"],
    body,
  };
}
