import { expect } from "vitest";
import { outboxStatus } from "./outboxes.ts";
import { until } from "./until.ts";

/** What `POST /v1/ingest/…?ack=edge` answers. */
export interface Taken {
  readonly accepted: number;
  readonly position: string;
}

export async function ingest(
  edgeUrl: string,
  stream: string,
  records: readonly unknown[],
): Promise<Taken> {
  const answer = await fetch(`${edgeUrl}/v1/ingest/${stream}?ack=edge`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(records),
  });
  expect(answer.status, await answer.clone().text()).toBe(202);
  return (await answer.json()) as Taken;
}

export const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, i) => from + i);

/** Resolves when the outbox of the stream has failed twice in a row, so that it waits for its alarm. */
export async function failedTwice(edgeUrl: string, stream: string): Promise<void> {
  await until(`the outbox of ${stream} has failed twice`, async () =>
    (await outboxStatus(edgeUrl, stream)).attempts >= 2 ? true : undefined,
  );
}
