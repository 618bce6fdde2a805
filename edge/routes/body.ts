import { ForebayError } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import type { PendingBudget } from "../batcher/mod.ts";

/** Bytes of one request's body, taken from the isolate's budget as they come, so that many slow uploads cannot fill its memory. */
export class BodyHold {
  readonly #budget: PendingBudget;
  #bytes = 0;

  constructor(budget: PendingBudget) {
    this.#budget = budget;
  }

  /** @throws ForebayError `edge_overloaded` */
  take(bytes: number): void {
    this.#budget.take(bytes);
    this.#bytes += bytes;
  }

  release(): void {
    this.#budget.release(this.#bytes);
    this.#bytes = 0;
  }
}

/**
 * A request's body in one buffer of its own. With a Content-Length the place is taken before the bytes, without one byte by
 * byte; either way real bytes are counted (I3). What is not read when it is refused stays for `drainBody`.
 *
 * @throws ForebayError `body_too_large` with the limit, `bad_header` for a Content-Length that is no number or another one,
 *   `edge_overloaded`, `bad_request` when the sender goes away
 */
export async function readBody(
  request: Request,
  bytesMax: number,
  hold: BodyHold,
): Promise<Uint8Array<ArrayBuffer>> {
  const declared = declaredLength(request);
  if (declared === null) {
    return request.body === null ? new Uint8Array(0) : await collect(request.body, bytesMax, hold);
  }
  if (declared > bytesMax) {
    throw tooLarge(`Content-Length says ${declared}`, bytesMax);
  }
  hold.take(declared);
  const body = new Uint8Array(await request.arrayBuffer().catch(endedEarly));
  if (body.length !== declared) {
    throw new ForebayError(
      "bad_header",
      `Content-Length says ${declared}, the body has ${body.length} bytes`,
    );
  }
  return body;
}

async function collect(
  body: ReadableStream<Uint8Array>,
  bytesMax: number,
  hold: BodyHold,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunksOf(body)) {
    bytes += chunk.byteLength;
    if (bytes > bytesMax) {
      throw tooLarge(`the body has ${bytes} bytes and goes on`, bytesMax);
    }
    hold.take(chunk.byteLength);
    chunks.push(chunk);
  }
  return joined(chunks, bytes);
}

/** What is drained of a body nobody wanted; what is left beyond is cancelled, and its sender may lose the connection. */
const drainBytesMax = 8 * limits.bodyBytesMax;

/** Lets what is left of a body pass before the answer, because a sender that is cut off does not read it. Never rejects. */
export async function drainBody(request: Request): Promise<void> {
  const { body } = request;
  if (body === null || body.locked) {
    return;
  }
  try {
    let bytes = 0;
    for await (const chunk of chunksOf(body)) {
      bytes += chunk.byteLength;
      if (bytes > drainBytesMax) {
        break;
      }
    }
    await body.cancel();
  } catch {
    // The sender is gone: nothing is left to drain.
  }
}

/** Leaves the stream unlocked and uncancelled wherever the loop ends. */
async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(endedEarly);
      if (done) {
        return;
      }
      yield value;
    }
  } finally {
    reader.releaseLock();
  }
}

function declaredLength(request: Request): number | null {
  const text = request.headers.get("content-length");
  if (text === null) {
    return null;
  }
  if (!/^\d{1,15}$/.test(text)) {
    throw new ForebayError(
      "bad_header",
      `Content-Length ${JSON.stringify(text.slice(0, 64))} is not a number of bytes`,
    );
  }
  return Number(text);
}

function joined(chunks: readonly Uint8Array[], bytes: number): Uint8Array<ArrayBuffer> {
  const body = new Uint8Array(bytes);
  let at = 0;
  for (const chunk of chunks) {
    body.set(chunk, at);
    at += chunk.byteLength;
  }
  return body;
}

/** Nobody is left to read this answer. */
function endedEarly(cause: unknown): never {
  throw new ForebayError("bad_request", "the body ended before its end was sent", { cause });
}

function tooLarge(found: string, bytesMax: number): ForebayError {
  return new ForebayError("body_too_large", `${found}, the limit is ${bytesMax} bytes`);
}
