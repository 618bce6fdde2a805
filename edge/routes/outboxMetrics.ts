import type { OutboxStatus } from "../outbox/mod.ts";

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number];
type Metric = readonly [name: string, type: "gauge" | "counter", help: string, Sample[]];

/** An outbox's status in the text exposition format of Prometheus, version 0.0.4 (F14). */
export function outboxMetrics(status: OutboxStatus): string {
  return metricsOf(status)
    .map(([name, type, help, samples]) => {
      const lines = samples.map(
        ([labels, value]) => `${name}${labelText({ buffer: status.buffer, ...labels })} ${value}\n`,
      );
      return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("")}`;
    })
    .join("");
}

function metricsOf({ health, ledger, link, ...status }: OutboxStatus): Metric[] {
  const one = (value: number): Sample[] => [[{}, value]];
  const records = Object.entries(ledger).map(([state, n]): Sample => [{ state }, n]);
  const nacks = Object.entries(link.nacks).map(([code, n]): Sample => [{ code }, n]);
  return [
    [
      "forebay_outbox_healthy",
      "gauge",
      "1 while its drain is not stalled.",
      one(Number(health.state === "ok")),
    ],
    ["forebay_outbox_frames", "gauge", "Frames kept.", one(status.frames)],
    ["forebay_outbox_bytes", "gauge", "Bytes of frames kept.", one(status.bytes)],
    [
      "forebay_outbox_oldest_unacked_seconds",
      "gauge",
      "Age of the oldest frame kept.",
      one(status.oldestUnackedMs / 1000),
    ],
    [
      "forebay_outbox_records",
      "gauge",
      "Records by state: accepted = inFrames + acknowledged + dead.",
      records,
    ],
    ["forebay_outbox_attempts", "gauge", "Failed drains in a row.", one(status.attempts)],
    ["forebay_outbox_strikes", "gauge", "Terminal NACKs of the oldest frame.", one(status.strikes)],
    [
      "forebay_outbox_drain_bytes_per_second",
      "gauge",
      "Bytes that drain now.",
      one(link.bytesPerSecond),
    ],
    [
      "forebay_outbox_frames_sent_total",
      "counter",
      "Frames sent since it was constructed.",
      one(link.framesSent),
    ],
    [
      "forebay_outbox_frames_replayed_total",
      "counter",
      "Of them, sent before.",
      one(link.framesReplayed),
    ],
    ["forebay_outbox_frames_acked_total", "counter", "Frames acknowledged.", one(link.framesAcked)],
    ["forebay_outbox_frames_voided_total", "counter", "Frames given up.", one(link.framesVoided)],
    [
      "forebay_outbox_link_failures_total",
      "counter",
      "Sendings lost or refused as a whole.",
      one(link.failures),
    ],
    [
      "forebay_outbox_link_stalls_total",
      "counter",
      "Answers that moved nothing.",
      one(link.stalls),
    ],
    ["forebay_outbox_nacks_total", "counter", "Frames refused, by code.", nacks],
    [
      "forebay_outbox_constructions_total",
      "counter",
      "Times the object was constructed over what it holds.",
      one(status.constructions),
    ],
  ];
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const fields = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
  return `{${fields.join(",")}}`;
}
