import type { OutboxStatus } from "../../edge/outbox/types.ts";
import { partitionOf } from "../../shared/ids/mod.ts";
import { until } from "./until.ts";

/** OUTBOX_PARTITIONS of wrangler.toml. */
const partitions = 8;

export async function outboxStatus(
  edgeUrl: string,
  partition: number,
  key?: string,
): Promise<OutboxStatus> {
  const answer = await fetch(`${edgeUrl}/v1/outboxes/${partition}`, {
    headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
  });
  if (answer.status !== 200) {
    throw new Error(`GET /v1/outboxes/${partition}: ${answer.status} ${await answer.text()}`);
  }
  return (await answer.json()) as OutboxStatus;
}

/** The status of the stream's outbox once the origin has acknowledged all it held. */
export function drained(edgeUrl: string, stream: string, key?: string): Promise<OutboxStatus> {
  return until(`the outbox of ${stream} is empty`, async () => {
    const status = await outboxStatus(edgeUrl, partitionOf(stream, partitions), key);
    return status.frames === 0 ? status : undefined;
  });
}
