import { ForebayError } from "../../shared/errors/mod.ts";
import type { FrameRequest } from "../../shared/frame/mod.ts";
import { parsePosition } from "../../shared/ids/mod.ts";
import { limits } from "../../shared/limits.ts";
import { acksPrefix, parseDecimal } from "../../shared/protocol/mod.ts";
import type { Call } from "./call.ts";
import { outboxStub } from "./env.ts";
import type { OutboxRefusal, OutboxRpc } from "../outbox/mod.ts";
import { outboxMetrics } from "./outboxMetrics.ts";
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
  const { received, durable } = told(reply);
  return jsonReply(200, { position: text, received, durable });
}

/** `GET /v1/outboxes`: the region and how many outboxes it has. Touches none of them. */
export function outboxes(call: Call): Response {
  call.authorize();
  const { region, partitions } = call.settings;
  return jsonReply(200, { region, partitions });
}

/**
 * What is below `/v1/outboxes/<partition>`: nothing (its status), `/metrics` (the same for Prometheus), `/dead?after=<row>`
 * (frames given up), `/dead/<row>` (one with its records). Asking for an outbox that was never used constructs it, so it
 * needs the key.
 */
export async function outboxView(call: Call): Promise<Response> {
  call.authorize();
  const { stub, rest } = outboxAt(call);
  if (rest === "") {
    return jsonReply(200, await heard(stub.status()));
  }
  if (rest === "/metrics") {
    const headers = { "content-type": "text/plain; version=0.0.4", "cache-control": "no-store" };
    return new Response(outboxMetrics(await heard(stub.status())), { headers });
  }
  if (rest === "/dead") {
    const frames = await heard(stub.dead(numberOf("after", call.query("after") ?? "0")));
    return jsonReply(200, { frames });
  }
  const letter = told(await heard(stub.deadLetter(deadRow(rest))));
  return jsonReply(200, { ...letter, requests: letter.requests.map(shownRequest) });
}

/**
 * `POST /v1/outboxes/<partition>/drain`: sends what is kept now, without its backoff. `POST …/dead/<row>/replay`: sends a frame
 * that was given up again.
 */
export async function outboxDeed(call: Call): Promise<Response> {
  call.authorize();
  const { stub, rest } = outboxAt(call);
  if (rest === "/drain") {
    await heard(stub.drain());
    return jsonReply(202, await heard(stub.status()));
  }
  const row = deadRow(rest.endsWith("/replay") ? rest.slice(0, -"/replay".length) : "");
  const { fsn } = told(await heard(stub.replayDead(row)));
  return jsonReply(202, { row, fsn });
}

function outboxAt(call: Call): { readonly stub: OutboxRpc; readonly rest: string } {
  const text = call.after(outboxesPrefix);
  const slash = text.indexOf("/");
  const name = slash < 0 ? text : text.slice(0, slash);
  const partition = partitionOfBuffer(call, `${call.settings.region}:${name}`);
  if (partition === null) {
    const message = `there is no outbox ${JSON.stringify(name.slice(0, 64))}; they go from 0 to ${call.settings.partitions - 1}`;
    throw new ForebayError("not_found", message);
  }
  const stub = outboxStub(call.env, call.settings.region, partition);
  return { stub, rest: slash < 0 ? "" : text.slice(slash) };
}

function deadRow(rest: string): number {
  const row = rest.startsWith("/dead/") ? parseDecimal(rest.slice("/dead/".length)) : undefined;
  if (row === undefined) {
    const shown = JSON.stringify(rest.slice(0, 64));
    throw new ForebayError("not_found", `an outbox has nothing at ${shown}`);
  }
  return row;
}

function numberOf(name: string, text: string): number {
  const value = parseDecimal(text);
  if (value === undefined) {
    throw new ForebayError("bad_query", `${name} is ${JSON.stringify(text)}, it must be a number`);
  }
  return value;
}

/** Classes do not survive RPC: the refusal as the error it stands for. */
function told<T extends { readonly kind: string }>(reply: T | OutboxRefusal): T {
  if (isRefusal(reply)) {
    throw new ForebayError(reply.code, reply.message, reply);
  }
  return reply;
}

function isRefusal(reply: { readonly kind: string }): reply is OutboxRefusal {
  return reply.kind === "refused";
}

/** A request with its records as text, or as base64 what is no UTF-8. */
function shownRequest({ records, ...request }: FrameRequest): unknown {
  return { ...request, records: records.map(shownRecord) };
}

function shownRecord(record: Uint8Array): { readonly text: string } | { readonly base64: string } {
  try {
    return { text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(record) };
  } catch {
    return { base64: base64(record) };
  }
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

/** In pieces: an argument list holds no megabyte. */
function base64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += 4096) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 4096));
  }
  return btoa(binary);
}
