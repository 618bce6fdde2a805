import { BodyInParts, drainBytesMax, tooLarge, type BodySink, type HeldBytes } from "./body.ts";

/**
 * The body of the request at hand on a connection, whose length its head has told:
 *
 *     came with its head ──── somebody takes it ──▶ delivered in one piece, not copied
 *     still to come ────┬──── somebody takes it ──▶ collected ── complete ──▶ delivered
 *                       │                               └── too much ──▶ refused, the rest passes
 *                       └──── nobody does ────────▶ passes, up to a bound
 */
export class Reception {
  /** Bytes still to come. */
  #missing = 0;
  /** Who collects them; null once nobody wants them any more. */
  #parts: BodyInParts | null = null;
  #passed = 0;
  /** A body that came with its head, while the request's handler has its turn. */
  #whole: Uint8Array | null = null;
  #sink: BodySink | null = null;
  #bytesMax = 0;

  get missing(): number {
    return this.#missing;
  }

  /** More of an unwanted body has passed than a client needs to come to its answer. */
  get overrun(): boolean {
    return this.#passed > drainBytesMax;
  }

  beginWhole(body: Uint8Array): void {
    this.#whole = body;
  }

  beginMissing(bytes: number): void {
    this.#missing = bytes;
    this.#passed = 0;
  }

  /** Between `begin…` and the end of the handler's turn. */
  takeBody(bytesMax: number, held: HeldBytes, sink: BodySink): void {
    if (this.#whole === null) {
      this.#parts = new BodyInParts(bytesMax, held, sink);
    } else {
      this.#sink = sink;
      this.#bytesMax = bytesMax;
    }
  }

  /** The handler has had its turn. A whole body that nobody took has passed with this. */
  deliver(): void {
    const { body, sink } = { body: this.#whole, sink: this.#sink };
    this.#whole = null;
    this.#sink = null;
    if (body === null || sink === null) {
      return;
    }
    if (body.byteLength > this.#bytesMax) {
      sink.onBodyRefused(tooLarge(this.#bytesMax, `${body.byteLength} bytes came`));
    } else {
      sink.onBody(body);
    }
  }

  /** @returns what stands behind the body in these bytes */
  add(bytes: Buffer): Buffer {
    const part = bytes.subarray(0, this.#missing);
    this.#missing -= part.length;
    const parts = this.#parts;
    if (parts === null) {
      this.#passed += part.length;
    } else {
      this.#collect(parts, part);
    }
    return bytes.subarray(part.length);
  }

  /** The rest will not come. */
  abort(): void {
    const parts = this.#parts;
    this.#parts = null;
    this.#missing = 0;
    parts?.abort();
  }

  #collect(parts: BodyInParts, part: Buffer): void {
    const refused = parts.add(part);
    if (refused !== null) {
      this.#parts = null;
      parts.refuse(refused);
    } else if (this.#missing === 0) {
      this.#parts = null;
      parts.end();
    }
  }
}
