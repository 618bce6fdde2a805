import type { Socket } from "node:net";
import { invariant, type ErrorCode } from "../../shared/errors/mod.ts";
import type { BodySink, HeldBytes } from "./body.ts";
import type { Channel } from "./channel.ts";
import type { Head } from "./head.ts";
import type { HeaderBlock } from "./headerBlock.ts";
import { Reception } from "./reception.ts";
import { recognise, type Recognised } from "./recognise.ts";
import type { Target } from "./target.ts";
import type { FrontSettings } from "./types.ts";
import { fieldLines, refusal, statusLine } from "./wire.ts";

/** What a connection needs of the front it belongs to. */
export interface ConnectionHost {
  /** A request of the subset; answered through the channel, at once or later. */
  onRequest(channel: Channel): void;
  /** From these bytes on the socket is node:http's. The connection does not listen to it any more. */
  handOver(connection: Connection, socket: Socket, bytes: Buffer): void;
  /** `dueAt` may be earlier than all others now. */
  watch(connection: Connection): void;
  forget(connection: Connection): void;
  /** ms since 1970 */
  now(): number;
  /** Fields of every answer of a connection now, each with its line end. */
  ownFields(): string;
  /** Each answer is the last of its connection; the handlers make it say so. */
  readonly closing: boolean;
  readonly settings: FrontSettings;
}

/** How long the client may take to read the last bytes. */
const farewellMs = 5000;

/**
 * A connection as long as it sends nothing but requests of the subset, which it takes one after the other:
 *
 *     between requests ── head and whole body ──────────────▶ answer due ──▶ between requests
 *         │       └────── head ──▶ body missing ── complete ──▲
 *         │                             └── refused: answered, the rest passes ──▶ between requests
 *         └── anything else ──▶ node:http, for good
 *
 * A head is read only between requests, so all own answers are written before node:http takes over. What comes while
 * an answer is due goes back to the socket, which is not read until then: so its end cannot come before those bytes,
 * and the socket's own buffer is the bound.
 */
export class Connection implements Channel {
  readonly method = "POST";
  readonly httpVersion = "1.1";
  /** When it is cut, by the host's clock; Infinity while only its answer is awaited. */
  dueAt: number;
  readonly #host: ConnectionHost;
  readonly #socket: Socket;
  readonly #reception = new Reception();
  /** The request at hand, or the last one. */
  #request: Recognised | null = null;
  #answerDue = false;
  #fresh = true;
  /** The socket holds bytes that came behind the request at hand. */
  #ahead = false;
  #halfClosed = false;
  #over = false;

  constructor(host: ConnectionHost, socket: Socket) {
    this.#host = host;
    this.#socket = socket;
    this.dueAt = host.now() + host.settings.headersTimeoutMs;
    socket.on("data", this.#onData);
    socket.on("end", this.#onEnd);
    socket.on("error", this.#onError);
    socket.on("close", this.#onClose);
    socket.on("drain", this.#onDrain);
  }

  get url(): string {
    return this.#current.url;
  }

  get head(): Head {
    return this.#current.head;
  }

  get target(): Target {
    return this.#current.target;
  }

  takeBody(bytesMax: number, held: HeldBytes, sink: BodySink): void {
    this.#reception.takeBody(bytesMax, held, sink);
  }

  answer(
    status: number,
    shared: HeaderBlock,
    own: readonly string[],
    body: Uint8Array<ArrayBuffer> | string | null,
  ): void {
    if (this.#over) {
      return;
    }
    const socket = this.#socket;
    const fields = own.length === 0 ? shared.text : shared.text + fieldLines(own);
    const head = `${statusLine(status)}${fields}${this.#host.ownFields()}\r\n`;
    if (body === null) {
      socket.write(head, "latin1");
    } else {
      socket.cork();
      socket.write(head, "latin1");
      socket.write(body);
      socket.uncork();
    }
    this.#answerDue = false;
    this.#fresh = false;
    if (this.#host.closing || this.#halfClosed) {
      this.end();
      return;
    }
    if (this.#reception.missing === 0) {
      this.#awaitNext();
    }
    this.#ahead = false;
    this.#regulate();
  }

  /** Between two requests, so that nobody loses anything by its end. */
  get idle(): boolean {
    return !this.#answerDue && this.#reception.missing === 0;
  }

  /** `dueAt` has come. */
  expire(): void {
    if (this.#over) {
      this.#socket.destroy();
    } else if (this.#answerDue || this.#fresh) {
      this.#refuse("request_timeout", "the request took too long to arrive");
    } else {
      this.end();
    }
  }

  /** Ends the connection once everything is written. */
  end(): void {
    if (this.#over) {
      return;
    }
    this.#over = true;
    this.#reception.abort();
    // A client that does not read the last bytes is not waited for any longer than this.
    this.dueAt = this.#host.now() + farewellMs;
    this.#host.watch(this);
    this.#socket.destroySoon();
  }

  /** Ends the connection whatever is under way. */
  cut(): void {
    this.#socket.destroy();
  }

  readonly #onData = (chunk: Buffer): void => {
    let left = chunk;
    while (left.length > 0 && !this.#over) {
      if (this.#reception.missing > 0) {
        left = this.#receive(left);
      } else if (this.#answerDue) {
        this.#ahead = true;
        this.#regulate();
        this.#socket.unshift(left);
        return;
      } else {
        const request = recognise(left, this.#request);
        if (request === null) {
          this.#handOver(left);
          return;
        }
        left = this.#begin(request, left);
      }
    }
  };

  /** Everything that came before it has been taken. */
  readonly #onEnd = (): void => {
    this.#halfClosed = true;
    const { missing } = this.#reception;
    if (this.#answerDue && missing > 0) {
      this.#refuse("bad_request", `the body ended ${missing} bytes early`);
    } else if (!this.#answerDue) {
      this.end();
    }
  };

  /** 'close' follows. */
  readonly #onError = (): void => {};

  readonly #onClose = (): void => {
    this.#over = true;
    this.#host.forget(this);
    this.#reception.abort();
  };

  readonly #onDrain = (): void => {
    this.#regulate();
  };

  get #current(): Recognised {
    invariant(this.#request !== null, "a connection is a channel while it has a request");
    return this.#request;
  }

  /** @returns what stands behind the request, or its head while the body is missing */
  #begin(request: Recognised, bytes: Buffer): Buffer {
    const { headBytes, contentLength } = request;
    const host = this.#host;
    const end = headBytes + contentLength;
    this.#request = request;
    this.#answerDue = true;
    if (bytes.length < end) {
      this.#reception.beginMissing(contentLength);
      this.dueAt = host.now() + host.settings.requestTimeoutMs;
      host.watch(this);
      host.onRequest(this);
      return bytes.subarray(headBytes);
    }
    this.dueAt = Infinity;
    this.#reception.beginWhole(bytes.subarray(headBytes, end));
    host.onRequest(this);
    this.#reception.deliver();
    return bytes.subarray(end);
  }

  /** Bytes of the body that is missing. @returns what stands behind it */
  #receive(bytes: Buffer): Buffer {
    const reception = this.#reception;
    if (bytes.length >= reception.missing) {
      this.dueAt = Infinity;
    }
    const left = reception.add(bytes);
    if (reception.overrun) {
      this.#socket.destroy();
    } else if (this.idle) {
      this.#awaitNext();
    }
    return left;
  }

  #awaitNext(): void {
    this.dueAt = this.#host.now() + this.#host.settings.keepAliveTimeoutMs;
    this.#host.watch(this);
  }

  /** Reads on only while nothing waits, be it to be taken or to be sent. */
  #regulate(): void {
    const socket = this.#socket;
    const wait = this.#ahead || socket.writableNeedDrain;
    if (wait !== socket.isPaused()) {
      if (wait) {
        socket.pause();
      } else {
        socket.resume();
      }
    }
  }

  /** A last answer, to a request that did not come whole. */
  #refuse(code: ErrorCode, detail: string): void {
    this.#socket.write(refusal(code, detail), "latin1");
    this.end();
  }

  #handOver(bytes: Buffer): void {
    const socket = this.#socket;
    this.#over = true;
    socket.off("data", this.#onData);
    socket.off("end", this.#onEnd);
    socket.off("error", this.#onError);
    socket.off("close", this.#onClose);
    socket.off("drain", this.#onDrain);
    this.#host.handOver(this, socket, bytes);
  }
}
