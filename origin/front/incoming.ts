import { IncomingMessage } from "node:http";
import { invariant } from "../../shared/errors/mod.ts";
import { BodyInParts, drainBytesMax, type BodySink, type HeldBytes } from "./body.ts";

/**
 * A request whose body goes straight from the HTTP parser to its sink. The usual way ('data' and 'end'
 * listeners) takes two more turns of the tick queue and half a dozen calls per request; `push` is where
 * node:http hands the bytes over, so the bytes are taken there.
 */
export class ForebayIncoming extends IncomingMessage {
  #taking: BodyInParts | null = null;
  #drained = -1;

  /** Takes the body. Call in the 'request' event itself, before the parser hands over the first byte. */
  takeBody(bytesMax: number, held: HeldBytes, sink: BodySink): void {
    invariant(this.#taking === null && this.readableLength === 0, "a body is taken once, at once");
    this.#taking = new BodyInParts(bytesMax, held, sink);
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
        taking.end();
        return more;
      }
      const refusal = taking.add(chunk as Uint8Array);
      if (refusal !== null) {
        this.drainBody();
        taking.refuse(refusal);
      }
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
      taking.abort();
    }
    super._destroy(error, done);
  }
}
