import type { Socket } from "node:net";
import { BodyInParts, drainBytesMax, type BodySink, type HeldBytes } from "./body.ts";
import type { Channel } from "./channel.ts";
import { Head } from "./head.ts";
import { recognise, type Recognised } from "./recognise.ts";
import { Target } from "./target.ts";
import { answerHead, refusal } from "./wire.ts";

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
  /** The value of the Date field now. */
  date(): string;
  /** Each answer is the last of its connection; the handlers make it say so. */
  readonly closing: boolean;
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
}

/** Bytes of requests behind the one being answered; beyond it the socket is not read. */
const aheadBytesMax = 64 * 1024;

/** How long the client may take to read the last bytes. */
const farewellMs = 5000;

/**
 * A connection as long as it sends nothing but requests of the subset, which it takes one after the other:
 *
 *     between requests ── head and whole body ──────────────▶ answer due ──▶ between requests
 *         │       └────── head ──▶ body missing ── complete ──▲
 *         │                             └── refused: answered, the rest discarded ──▶ between requests
 *         └── anything else ──▶ node:http, for good
 *
 * A head is read only between requests, so all own answers are written before node:http takes over.
 */
export class Connection implements Channel {
  readonly method = "POST";
  readonly httpVersion = "1.1";
  url = "";
  head: Head = new Head();
  target: Target = new Target("");
  /** When it is cut, by the host's clock; Infinity while only its answer is awaited. */
  dueAt: number;
  readonly #host: ConnectionHost;
  readonly #socket: Socket;
  #answerDue = false;
  #fresh = true;
  /** The body of the request at hand when it came with its head. */
  #whole: Buffer | null = null;
  #sink: BodySink | null = null;
  /** Of a body that did not: bytes still to come, and who takes them; nobody once it is refused. */
  #missing = 0;
  #parts: BodyInParts | null = null;
  #discarded = 0;
  /** What came behind the request at hand. */
  #ahead: Buffer | null = null;
  #stepping = false;
  #halfClosed = false;
  #over = false;

  constructor(host: ConnectionHost, socket: Socket) {
    this.#host = host;
    this.#socket = socket;
    this.dueAt = host.now() + host.headersTimeoutMs;
    socket.on("data", this.#onData);
    socket.on("end", this.#onEnd);
    socket.on("error", this.#onError);
    socket.on("close", this.#onClose);
    socket.on("drain", this.#onDrain);
  }

  takeBody(bytesMax: number, held: HeldBytes, sink: BodySink): void {
    if (this.#whole === null) {
      this.#parts = new BodyInParts(bytesMax, held, sink);
    } else {
      this.#sink = sink;
    }
  }

  answer(
    status: number,
    headers: readonly string[],
    body: Uint8Array<ArrayBuffer> | string | null,
  ): void {
    if (this.#over) {
      return;
    }
    const host = this.#host;
    const socket = this.#socket;
    const head = answerHead(status, headers, connectionFields(host));
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
    if (host.closing) {
      this.#finish();
      return;
    }
    if (this.#missing === 0) {
      this.#awaitNext();
    }
    if (!this.#stepping) {
      this.#goOn();
    }
  }

  /** Between two requests, so that nobody loses anything by its end. */
  get idle(): boolean {
    return !this.#answerDue && this.#missing === 0;
  }

  /** `dueAt` has come. */
  expire(): void {
    if (this.#over) {
      this.#socket.destroy();
      return;
    }
    if (this.#answerDue || this.#fresh) {
      this.#socket.write(
        refusal("request_timeout", "the request took too long to arrive"),
        "latin1",
      );
    }
    this.#finish();
  }

  /** Writes what is to be written and ends the connection. */
  end(): void {
    this.#finish();
  }

  /** Ends the connection whatever is under way. */
  cut(): void {
    this.#socket.destroy();
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#over) {
      return;
    }
    if (this.#answerDue && this.#missing === 0) {
      this.#ahead = this.#ahead === null ? chunk : Buffer.concat([this.#ahead, chunk]);
      this.#regulate();
    } else {
      this.#step(chunk);
    }
  };

  readonly #onEnd = (): void => {
    this.#halfClosed = true;
    if (this.#missing > 0) {
      this.#socket.destroy();
    } else if (!this.#answerDue) {
      this.#finish();
    }
  };

  /** 'close' follows. */
  readonly #onError = (): void => {};

  readonly #onClose = (): void => {
    this.#over = true;
    this.#host.forget(this);
    const parts = this.#parts;
    this.#parts = null;
    parts?.abort();
  };

  readonly #onDrain = (): void => {
    this.#regulate();
  };

  /** Takes what can be taken of these bytes; the rest waits for the answer in `#ahead`. */
  #step(bytes: Buffer): void {
    this.#stepping = true;
    let left: Buffer | null = bytes;
    while (left !== null && left.length > 0 && !this.#over) {
      if (this.#missing > 0) {
        left = this.#takeBytes(left);
      } else if (this.#answerDue) {
        this.#ahead = left;
        break;
      } else {
        const request = recognise(left);
        if (request === null) {
          this.#handOver(left);
          return;
        }
        left = this.#begin(request, left);
      }
    }
    this.#stepping = false;
    this.#regulate();
    if (this.#halfClosed && this.idle) {
      this.#finish();
    }
  }

  /** @returns what stands behind the request */
  #begin(request: Recognised, bytes: Buffer): Buffer {
    const { headBytes, contentLength } = request;
    const host = this.#host;
    this.url = request.url;
    this.head = request.head;
    this.target = new Target(request.url);
    this.#answerDue = true;
    this.dueAt = Infinity;
    const end = headBytes + contentLength;
    if (bytes.length < end) {
      this.#missing = contentLength;
      this.#discarded = 0;
      this.dueAt = host.now() + host.requestTimeoutMs;
      host.watch(this);
      host.onRequest(this);
      return bytes.subarray(headBytes);
    }
    this.#whole = bytes.subarray(headBytes, end);
    host.onRequest(this);
    const { body, sink } = { body: this.#whole, sink: this.#sink };
    this.#whole = null;
    this.#sink = null;
    sink?.onBody(body);
    return bytes.subarray(end);
  }

  /** Bytes of the body that is missing. @returns what stands behind it */
  #takeBytes(bytes: Buffer): Buffer {
    const part = bytes.subarray(0, this.#missing);
    this.#missing -= part.length;
    const parts = this.#parts;
    if (parts === null) {
      this.#discard(part.length);
    } else {
      this.#add(parts, part);
    }
    return bytes.subarray(part.length);
  }

  #add(parts: BodyInParts, part: Buffer): void {
    const refused = parts.add(part);
    if (refused !== null) {
      this.#parts = null;
      parts.refuse(refused);
    } else if (this.#missing === 0) {
      this.#parts = null;
      this.dueAt = Infinity;
      parts.end();
    }
  }

  #discard(length: number): void {
    this.#discarded += length;
    if (this.#discarded > drainBytesMax) {
      this.#socket.destroy();
    } else if (this.#missing === 0) {
      this.#awaitNext();
    }
  }

  #awaitNext(): void {
    this.dueAt = this.#host.now() + this.#host.keepAliveTimeoutMs;
    this.#host.watch(this);
  }

  /** The answer is written: what came meanwhile is next. */
  #goOn(): void {
    const ahead = this.#ahead;
    this.#ahead = null;
    this.#regulate();
    if (ahead !== null) {
      this.#step(ahead);
    } else if (this.#halfClosed && this.idle) {
      this.#finish();
    }
  }

  /** Reads on only while not too much waits, be it to be taken or to be sent. */
  #regulate(): void {
    const socket = this.#socket;
    const full = (this.#ahead?.length ?? 0) > aheadBytesMax || socket.writableNeedDrain;
    if (full !== socket.isPaused()) {
      if (full) {
        socket.pause();
      } else {
        socket.resume();
      }
    }
  }

  #handOver(bytes: Buffer): void {
    this.#leave();
    this.#host.handOver(this, this.#socket, bytes);
  }

  #finish(): void {
    if (this.#over) {
      return;
    }
    this.#over = true;
    const parts = this.#parts;
    this.#parts = null;
    parts?.abort();
    // A client that does not read the last bytes is not waited for any longer than this.
    this.dueAt = this.#host.now() + farewellMs;
    this.#host.watch(this);
    this.#socket.destroySoon();
  }

  #leave(): void {
    const socket = this.#socket;
    this.#over = true;
    socket.off("data", this.#onData);
    socket.off("end", this.#onEnd);
    socket.off("error", this.#onError);
    socket.off("close", this.#onClose);
    socket.off("drain", this.#onDrain);
  }
}

function connectionFields(host: ConnectionHost): string {
  const date = `date: ${host.date()}\r\n`;
  return host.closing
    ? date
    : `${date}connection: keep-alive\r\nkeep-alive: timeout=${Math.floor(host.keepAliveTimeoutMs / 1000)}\r\n`;
}
