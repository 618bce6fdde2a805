import { IncomingMessage } from "node:http";
import { ForebayError, invariant } from "../../shared/errors/mod.ts";

/** Takes one request body, whole. Exactly one of the three is called, once. */
export interface BodySink {
  /** The whole body; a body that came in one piece is that piece, not a copy. */
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

interface Taking {
  readonly sink: BodySink;
  readonly bytesMax: number;
  readonly held: HeldBytes;
  chunks: Uint8Array[] | null;
  /** The only chunk so far, or null: nearly every append has exactly one. */
  first: Uint8Array | null;
  bytes: number;
}

/** What is drained of a refused body before the connection is cut: enough for a client to come to its answer. */
const drainBytesMax = 16 * 1024 * 1024;
const nothing = new Uint8Array(0);

/**
 * A request whose body goes straight from the HTTP parser to its sink. The usual way ('data' and 'end'
 * listeners) takes two more turns of the tick queue and half a dozen calls per request; `push` is where
 * node:http hands the bytes over, so the bytes are taken there.
 */
export class ForebayIncoming extends IncomingMessage {
  #taking: Taking | null = null;
  #drained = -1;

  /** Takes the body. Call in the 'request' event itself, before the parser hands over the first byte. */
  takeBody(bytesMax: number, held: HeldBytes, sink: BodySink): void {
    invariant(this.#taking === null && this.readableLength === 0, "a body is taken once, at once");
    this.#taking = { sink, bytesMax, held, chunks: null, first: null, bytes: 0 };
  }

  /** Lets what is left of the body pass, up to a bound, so that the client reads its answer. */
  drainBody(): void {
    this.#taking = null;
    this.#drained = 0;
    // Marks the body as consumed: node:http would otherwise discard it without a bound.
    this.read(0);
    this.resume();
  }

  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    const taking = this.#taking;
    if (taking !== null) {
      if (chunk === null) {
        this.#taking = null;
        const more = super.push(null);
        deliver(taking);
        return more;
      }
      this.#take(taking, chunk as Uint8Array);
      return true;
    }
    if (this.#drained >= 0 && chunk !== null) {
      this.#drained += (chunk as Uint8Array).byteLength;
      if (this.#drained > drainBytesMax) {
        this.socket.destroy();
      }
      return true;
    }
    return super.push(chunk, encoding);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const taking = this.#taking;
    if (taking !== null) {
      this.#taking = null;
      taking.held.held -= taking.bytes;
      taking.sink.onBodyAborted();
    }
    super._destroy(error, done);
  }

  #take(taking: Taking, chunk: Uint8Array): void {
    taking.bytes += chunk.byteLength;
    taking.held.held += chunk.byteLength;
    if (taking.bytes > taking.bytesMax) {
      this.#refuse(taking, tooLarge(taking.bytesMax, `at least ${taking.bytes} bytes came`));
    } else if (taking.held.held > taking.held.max) {
      const message = `more than ${taking.held.max} bytes of bodies are being received; try again`;
      this.#refuse(taking, new ForebayError("too_many_waiting", message));
    } else if (taking.chunks !== null) {
      taking.chunks.push(chunk);
    } else if (taking.first !== null) {
      taking.chunks = [taking.first, chunk];
    } else {
      taking.first = chunk;
    }
  }

  #refuse(taking: Taking, error: ForebayError): void {
    taking.held.held -= taking.bytes;
    this.drainBody();
    taking.sink.onBodyRefused(error);
  }
}

/** The bytes are the sink's from here on; it is judged at once, so they no longer count as held. */
function deliver(taking: Taking): void {
  taking.held.held -= taking.bytes;
  const body =
    taking.chunks === null ? (taking.first ?? nothing) : Buffer.concat(taking.chunks, taking.bytes);
  taking.sink.onBody(body);
}

/** 413 with the limit and what came. */
export function tooLarge(bytesMax: number, found: string): ForebayError {
  return new ForebayError("body_too_large", `the body may have ${bytesMax} bytes, ${found}`);
}
