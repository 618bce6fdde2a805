import { ForebayError } from "../../shared/errors/mod.ts";
import { parsePosition } from "../../shared/ids/mod.ts";
import { limits } from "../../shared/limits.ts";
import { acksPrefix, parseDecimal } from "../../shared/protocol/mod.ts";
import type { Call } from "./call.ts";
import { outboxStub } from "./env.ts";
import { jsonReply } from "./reply.ts";

export const outboxesPrefix = "/v1/outboxes/";

/**
 * `GET /v1/acks/<position>?waitMs=`: 200 `{position, received, durable}`, after at most `waitMs` (0 to 30,000) when it is
 * not durable before.
 */
export async function acks(call: Call): Promise<Response> {
  call.authorize();
  const text = call.after(acksPrefix);
  const position = parsePosition(text);
  const partition = partitionOfBuffer(call, position?.buffer ?? "");
  if (partition === null) {
    throw new ForebayError(
      "not_found",
      `${JSON.stringify(text.slice(0, 200))} is no position of this edge`,
    );
  }
  const waitMs = waitOf(call.query("waitMs"));
  const stub = outboxStub(call.env, call.settings.region, partition);
  const reply = await heard(stub.ack(text, waitMs));
  if (reply.kind === "refused") {
    throw new ForebayError(reply.code, reply.message, reply);
  }
  return jsonReply(200, { position: text, received: reply.received, durable: reply.durable });
}

/** `GET /v1/outboxes/<partition>`: the outbox's status. Asking for one that was never used creates it, so it needs the key. */
export async function outboxStatus(call: Call): Promise<Response> {
  call.authorize();
  const text = call.after(outboxesPrefix);
  const partition = partitionOfBuffer(call, `${call.settings.region}:${text}`);
  if (partition === null) {
    const message = `there is no outbox ${JSON.stringify(text.slice(0, 64))}; they go from 0 to ${call.settings.partitions - 1}`;
    throw new ForebayError("not_found", message);
  }
  const stub = outboxStub(call.env, call.settings.region, partition);
  return jsonReply(200, await heard(stub.status()));
}

async function heard<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (cause) {
    throw new ForebayError("outbox_unavailable", `the outbox did not answer (${String(cause)})`, {
      cause,
    });
  }
}

function partitionOfBuffer(call: Call, buffer: string): number | null {
  const { region, partitions } = call.settings;
  const partition = buffer.startsWith(`${region}:`)
    ? parseDecimal(buffer.slice(region.length + 1))
    : undefined;
  return partition !== undefined && partition < partitions ? partition : null;
}

function waitOf(text: string | null): number {
  const ms = text === null ? 0 : parseDecimal(text);
  if (ms === undefined || ms > limits.longPollMs) {
    throw new ForebayError(
      "bad_query",
      `waitMs is ${JSON.stringify(text)}, it must be from 0 to ${limits.longPollMs}`,
    );
  }
  return ms;
}
