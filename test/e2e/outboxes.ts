import type { OutboxStatus } from "../../edge/outbox/types.ts";
import { partitionOf, type Partition } from "../../shared/ids/mod.ts";
import { until } from "./until.ts";

/** The outbox of a stream, with OUTBOX_PARTITIONS as in wrangler.toml. */
export const outboxOf = (stream: string): Partition => partitionOf(stream, 8);

/** What the stream's outbox says of itself. */
export async function outboxStatus(
  edgeUrl: string,
  stream: string,
  key?: string,
): Promise<OutboxStatus> {
  const partition = outboxOf(stream);
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
    const status = await outboxStatus(edgeUrl, stream, key);
    return status.frames === 0 ? status : undefined;
  });
}
