import { ForebayError } from "../../shared/errors/mod.ts";

/** Takes one request body, whole. Exactly one of the three is called, once. */
export interface BodySink {
  /** The whole body, valid only during the call; one that came in one piece is that piece, not a copy. */
  onBody(body: Uint8Array): void;
  /** It is larger than allowed, or too many bytes are held already. The rest is being drained. */
  onBodyRefused(error: ForebayError): void;
  /** The client went away before the end. */
  onBodyAborted(): void;
}

/** Body bytes held by all requests together, so that many slow uploads cannot fill the memory. */
export class HeldBytes {
  readonly max: number;
  held = 0;

  constructor(max: number) {
    this.max = max;
  }
}

/** What is drained of a refused body before the connection is cut: enough for a client to come to its answer. */
export const drainBytesMax: number = 16 * 1024 * 1024;

const nothing = new Uint8Array(0);

/** The room a body that comes in pieces gets first; it doubles. */
const collectedBytesMin = 1024;

/**
 * One body on its way to its sink. Nearly every append has one piece, which stays as it is. Further ones are copied
 * together, so that however small they are, what is held is at most twice their bytes or a kilobyte.
 */
export class BodyInParts {
  readonly #sink: BodySink;
  readonly #bytesMax: number;
  readonly #held: HeldBytes;
  /** The only piece, or room for all of them of which `#bytes` are filled. */
  #collected: Uint8Array = nothing;
  #bytes = 0;

  constructor(bytesMax: number, held: HeldBytes, sink: BodySink) {
    this.#bytesMax = bytesMax;
    this.#held = held;
    this.#sink = sink;
  }

  /** @returns why no more of it is taken; to be told to the sink once the rest is on its way out */
  add(chunk: Uint8Array): ForebayError | null {
    const before = this.#bytes;
    this.#bytes += chunk.byteLength;
    this.#held.held += chunk.byteLength;
    if (this.#bytes > this.#bytesMax) {
      return tooLarge(this.#bytesMax, `at least ${this.#bytes} bytes came`);
    }
    if (this.#held.held > this.#held.max) {
      const message = `more than ${this.#held.max} bytes of bodies are being received; try again`;
      return new ForebayError("too_many_waiting", message);
    }
    if (before === 0) {
      this.#collected = chunk;
    } else {
      this.#append(chunk, before);
    }
    return null;
  }

  /** The bytes are the sink's from here on; it judges at once, so they no longer count as held. */
  end(): void {
    this.#letGo();
    const collected = this.#collected;
    const exact = collected.byteLength === this.#bytes;
    this.#sink.onBody(exact ? collected : collected.subarray(0, this.#bytes));
  }

  refuse(error: ForebayError): void {
    this.#letGo();
    this.#sink.onBodyRefused(error);
  }

  abort(): void {
    this.#letGo();
    this.#sink.onBodyAborted();
  }

  #append(chunk: Uint8Array, before: number): void {
    if (this.#bytes > this.#collected.byteLength) {
      const room = Math.max(2 * this.#bytes, collectedBytesMin);
      const larger = Buffer.allocUnsafeSlow(Math.min(room, Math.max(this.#bytesMax, this.#bytes)));
      larger.set(this.#collected.subarray(0, before));
      this.#collected = larger;
    }
    this.#collected.set(chunk, before);
  }

  #letGo(): void {
    this.#held.held -= this.#bytes;
  }
}

/** 413 with the limit and what came. */
export function tooLarge(bytesMax: number, found: string): ForebayError {
  return new ForebayError("body_too_large", `the body may have ${bytesMax} bytes, ${found}`);
}
