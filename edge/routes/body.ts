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
 * A request's body in one buffer of its own, real bytes counted whatever Content-Length says (I3). What is not read when it
 * is refused stays for `drainBody`.
 *
 * @throws ForebayError `body_too_large` with the limit, `bad_header` for a Content-Length that is no number or another one,
 *   `edge_overloaded`
 */
export async function readBody(
  request: Request,
  bytesMax: number,
  hold: BodyHold,
): Promise<Uint8Array<ArrayBuffer>> {
  const declared = declaredLength(request);
  if (declared !== null && declared > bytesMax) {
    throw tooLarge(`Content-Length says ${declared}`, bytesMax);
  }
  if (request.body === null) {
    return new Uint8Array(0);
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunksOf(request.body)) {
    bytes += chunk.byteLength;
    if (bytes > bytesMax) {
      throw tooLarge(`the body has ${bytes} bytes and goes on`, bytesMax);
    }
    hold.take(chunk.byteLength);
    chunks.push(chunk);
  }
  if (declared !== null && declared !== bytes) {
    throw new ForebayError(
      "bad_header",
      `Content-Length says ${declared}, the body has ${bytes} bytes`,
    );
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
      const { done, value } = await reader.read();
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

/** Copies even a single chunk when it is a view: records are views of this buffer, and a view sent by RPC takes all of it along. */
function joined(chunks: readonly Uint8Array[], bytes: number): Uint8Array<ArrayBuffer> {
  const [first] = chunks;
  if (chunks.length === 1 && first !== undefined && first.byteLength === first.buffer.byteLength) {
    return first as Uint8Array<ArrayBuffer>;
  }
  const body = new Uint8Array(bytes);
  let at = 0;
  for (const chunk of chunks) {
    body.set(chunk, at);
    at += chunk.byteLength;
  }
  return body;
}

function tooLarge(found: string, bytesMax: number): ForebayError {
  return new ForebayError("body_too_large", `${found}, the limit is ${bytesMax} bytes`);
}
