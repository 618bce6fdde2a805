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

/** One body on its way to its sink. */
export class BodyInParts {
  readonly #sink: BodySink;
  readonly #bytesMax: number;
  readonly #held: HeldBytes;
  #chunks: Uint8Array[] | null = null;
  /** The only chunk so far, or null: nearly every append has exactly one. */
  #first: Uint8Array | null = null;
  #bytes = 0;

  constructor(bytesMax: number, held: HeldBytes, sink: BodySink) {
    this.#bytesMax = bytesMax;
    this.#held = held;
    this.#sink = sink;
  }

  /** @returns why no more of it is taken; to be told to the sink once the rest is on its way out */
  add(chunk: Uint8Array): ForebayError | null {
    this.#bytes += chunk.byteLength;
    this.#held.held += chunk.byteLength;
    if (this.#bytes > this.#bytesMax) {
      return tooLarge(this.#bytesMax, `at least ${this.#bytes} bytes came`);
    }
    if (this.#held.held > this.#held.max) {
      const message = `more than ${this.#held.max} bytes of bodies are being received; try again`;
      return new ForebayError("too_many_waiting", message);
    }
    if (this.#chunks !== null) {
      this.#chunks.push(chunk);
    } else if (this.#first !== null) {
      this.#chunks = [this.#first, chunk];
    } else {
      this.#first = chunk;
    }
    return null;
  }

  /** The bytes are the sink's from here on; it judges at once, so they no longer count as held. */
  end(): void {
    this.#letGo();
    this.#sink.onBody(
      this.#chunks === null ? (this.#first ?? nothing) : Buffer.concat(this.#chunks, this.#bytes),
    );
  }

  refuse(error: ForebayError): void {
    this.#letGo();
    this.#sink.onBodyRefused(error);
  }

  abort(): void {
    this.#letGo();
    this.#sink.onBodyAborted();
  }

  #letGo(): void {
    this.#held.held -= this.#bytes;
  }
}

/** 413 with the limit and what came. */
export function tooLarge(bytesMax: number, found: string): ForebayError {
  return new ForebayError("body_too_large", `the body may have ${bytesMax} bytes, ${found}`);
}
