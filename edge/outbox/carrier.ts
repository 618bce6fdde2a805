import { decodeMessages, type LinkMessage } from "../../shared/frame/mod.ts";
import type { Clock } from "../../shared/ports/mod.ts";
import { framesContentType, parseDecimal } from "../../shared/protocol/mod.ts";
import { postTimeoutMs } from "../../shared/sender/mod.ts";
import type { FramesLink } from "./settings.ts";

/**
 * What became of a POST. `refused` is any status but 200: for the whole POST, so it does not say which frame it is for;
 * `code` is our catalogue's when the answer is a problem document of ours.
 */
export type Outcome =
  | { readonly kind: "answered"; readonly messages: readonly LinkMessage[] }
  | {
      readonly kind: "refused";
      readonly status: number;
      readonly code: string | null;
      readonly reason: string;
      readonly retryAfterMs: number;
    }
  | { readonly kind: "lost"; readonly reason: string };

/** A reply is WELCOME, an ACK and perhaps a NACK. */
const replyBytesMax = 64 * 1024;
const problemBytesMax = 8 * 1024;
const reasonLengthMax = 300;
/** No Retry-After holds the outbox for longer than its own backoff would. */
const retryAfterMsMax = 60_000;

/** One POST of messages. Never throws, never hangs, leaves no body open. */
export async function post(
  clock: Clock,
  link: FramesLink,
  body: Uint8Array<ArrayBuffer>,
): Promise<Outcome> {
  const abort = new AbortController();
  const timer = clock.after(postTimeoutMs, () => {
    abort.abort(new Error(`no complete answer within ${postTimeoutMs} ms`));
  });
  try {
    const response = await fetch(link.url, {
      method: "POST",
      headers: {
        "content-type": framesContentType,
        ...(link.key === null ? {} : { authorization: `Bearer ${link.key}` }),
      },
      body,
      redirect: "manual",
      signal: abort.signal,
    });
    const reply = await readCapped(response);
    return response.status === 200
      ? { kind: "answered", messages: decodeMessages(reply) }
      : refused(response, reply);
  } catch (error) {
    return { kind: "lost", reason: error instanceof Error ? error.message : String(error) };
  } finally {
    timer.cancel();
  }
}

async function readCapped(response: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > replyBytesMax) {
      // Leaving the loop cancels the body.
      throw new Error(`the answer (${response.status}) has more than ${replyBytesMax} bytes`);
    }
    chunks.push(chunk);
  }
  return joined(chunks);
}

export function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function refused(response: Response, reply: Uint8Array): Outcome {
  const { status } = response;
  const text = new TextDecoder().decode(reply.subarray(0, problemBytesMax));
  const seconds = parseDecimal(response.headers.get("retry-after") ?? "") ?? 0;
  const reason = `${status} ${text.slice(0, reasonLengthMax)}`;
  const retryAfterMs = Math.min(retryAfterMsMax, seconds * 1000);
  return { kind: "refused", status, code: codeOf(text), reason, retryAfterMs };
}

function codeOf(text: string): string | null {
  try {
    const { code } = JSON.parse(text) as { readonly code?: unknown };
    return typeof code === "string" ? code : null;
  } catch {
    return null;
  }
}
