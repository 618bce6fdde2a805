import { ForebayError } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import {
  isHost,
  tooLarge,
  type BodySink,
  type Channel,
  type Head,
  type HeaderBlock,
  type NodeChannel,
  type Target,
} from "../front/mod.ts";
import { checkKey } from "./access.ts";
import type { Context } from "./context.ts";
import type { Route } from "./counters.ts";
import { problemReply, type Reply } from "./reply.ts";

/** One request and its answer. The hot paths take it from any channel, all others from node:http. */
export class Exchange<From extends Channel = NodeChannel> {
  readonly context: Context;
  readonly channel: From;
  readonly head: Head;
  readonly target: Target;
  route: Route = "other";

  constructor(context: Context, channel: From) {
    this.context = context;
    this.channel = channel;
    this.head = channel.head;
    this.target = channel.target;
  }

  /**
   * What every request must satisfy, whatever it asks for (I3).
   *
   * @throws ForebayError `url_too_long` | `headers_too_large` | `bad_header` | `http_version_not_supported` |
   *   `shutting_down`
   */
  checkShape(): void {
    const { head, channel, context } = this;
    const urlBytes = channel.url.length;
    if (urlBytes > limits.urlBytesMax) {
      const message = `the URL has ${urlBytes} bytes, at most ${limits.urlBytesMax} are taken`;
      throw new ForebayError("url_too_long", message);
    }
    if (head.bytes > limits.headerBytesMax) {
      const message = `the header fields have ${head.bytes} bytes, at most ${limits.headerBytesMax} are taken`;
      throw new ForebayError("headers_too_large", message);
    }
    if (head.duplicate !== null) {
      throw new ForebayError("bad_header", `the header field ${head.duplicate} stands there twice`);
    }
    const { httpVersion } = channel;
    if (httpVersion !== "1.1" && httpVersion !== "1.0") {
      const message = `HTTP/${httpVersion} is not served here, only HTTP/1.1 and HTTP/1.0`;
      throw new ForebayError("http_version_not_supported", message);
    }
    this.#checkHost();
    if (context.closing) {
      throw new ForebayError("shutting_down", "this server is shutting down; try again");
    }
  }

  /** RFC 9112 §3.2. HTTP/1.0 may leave Host out. */
  #checkHost(): void {
    const host = this.head.get("host");
    if (host === null && this.channel.httpVersion === "1.1") {
      throw new ForebayError("bad_header", "HTTP/1.1 needs a Host header field");
    }
    if (host !== null && !isHost(host)) {
      const found = JSON.stringify(host.slice(0, 64));
      throw new ForebayError("bad_header", `the Host header field ${found} names no host`);
    }
  }

  /**
   * The right to write. Called before a byte of the body is looked at.
   *
   * @throws ForebayError `unauthorized` | `origin_not_allowed`
   */
  checkWriter(): void {
    checkKey(this.context.settings.key, this.head, this.target);
    this.context.web.checkOrigin(this.head.get("origin"));
  }

  /**
   * Has the body delivered to `sink`, if what is known before it allows that.
   *
   * @throws ForebayError `body_too_large` | `unsupported_media_type`
   */
  takeBody(bytesMax: number, sink: BodySink): void {
    this.#refuseEncoded("content-encoding", "identity");
    this.#refuseEncoded("transfer-encoding", "chunked");
    const declared = this.head.get("content-length");
    if (declared !== null && Number(declared) > bytesMax) {
      throw tooLarge(bytesMax, `Content-Length says ${declared}`);
    }
    this.channel.takeBody(bytesMax, this.context.held, sink);
  }

  /** Of a body that is compressed, by whatever header, the bytes that came are not the bytes that were meant. */
  #refuseEncoded(field: "content-encoding" | "transfer-encoding", plain: string): void {
    const encoding = this.head.get(field);
    if (encoding !== null && encoding.toLowerCase() !== plain) {
      const message = `${field} ${JSON.stringify(encoding.slice(0, 64))} cannot be taken, only ${plain}`;
      throw new ForebayError("unsupported_media_type", message);
    }
  }

  /** Takes one of the places of those who wait. Each `enter` has one `leave`. */
  enter(): void {
    const { context } = this;
    if (context.waiting >= context.settings.waitersMax) {
      const message = `${context.waiting} requests are waiting, at most ${context.settings.waitersMax} may`;
      throw new ForebayError("too_many_waiting", message);
    }
    context.waiting++;
  }

  leave(): void {
    this.context.waiting--;
  }

  /** What every answer's head has. */
  get #shared(): HeaderBlock {
    return this.context.web.forOrigin(this.head.get("origin"));
  }

  /** What every answer's head has, then `own`; flat. */
  headersWith(own: readonly string[]): string[] {
    const headers = this.#shared.flat.concat(own);
    if (this.context.closing) {
      headers.push("connection", "close");
    }
    return headers;
  }

  /** All header fields of a reply, with its length. */
  headersOf(reply: Reply): string[] {
    return this.#shared.flat.concat(this.#ownOf(reply));
  }

  /** Writes the answer. One that nobody waits for any more is counted all the same. */
  send(reply: Reply): void {
    this.context.counters.answered(this.route, reply.status);
    this.channel.answer(reply.status, this.#shared, this.#ownOf(reply), reply.body);
  }

  #ownOf(reply: Reply): readonly string[] {
    const length = lengthOf(reply, this.channel.method);
    const { closing } = this.context;
    if (length === null && !closing) {
      return reply.headers;
    }
    const own = length === null ? [] : ["content-length", String(length)];
    return reply.headers.concat(own, closing ? ["connection", "close"] : []);
  }

  refuse(error: ForebayError): void {
    this.send(problemReply(error));
  }
}

/** What Content-Length says, null where the answer has none. */
function lengthOf({ status, body }: Reply, method: string): number | null {
  if (body !== null) {
    return Buffer.byteLength(body);
  }
  return status === 204 || status === 304 || method === "HEAD" ? null : 0;
}
