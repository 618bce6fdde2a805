import type { ServerResponse } from "node:http";
import { ForebayError } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import { checkKey } from "./access.ts";
import type { Context } from "./context.ts";
import type { Route } from "./counters.ts";
import { Head } from "./head.ts";
import { tooLarge, type BodySink, type ForebayIncoming } from "./incoming.ts";
import { problemReply, type Reply } from "./reply.ts";
import { Target } from "./target.ts";

/** One request and its answer. */
export class Exchange {
  readonly context: Context;
  readonly request: ForebayIncoming;
  readonly response: ServerResponse;
  readonly head: Head;
  readonly target: Target;
  route: Route = "other";
  /** The client waits for `100 Continue` before it sends the body. */
  readonly expectsContinue: boolean;
  bodyTaken = false;

  constructor(
    context: Context,
    request: ForebayIncoming,
    response: ServerResponse,
    expectsContinue: boolean,
  ) {
    this.context = context;
    this.request = request;
    this.response = response;
    this.expectsContinue = expectsContinue;
    this.head = new Head(request.rawHeaders);
    this.target = new Target(request.url ?? "/");
  }

  /**
   * What every request must satisfy, whatever it asks for (I3).
   *
   * @throws ForebayError `url_too_long` | `headers_too_large` | `bad_header` | `shutting_down`
   */
  checkShape(): void {
    const { head, request, context } = this;
    const urlBytes = request.url?.length ?? 0;
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
    if (head.get("host") === null && request.httpVersion === "1.1") {
      throw new ForebayError("bad_header", "HTTP/1.1 needs a Host header field");
    }
    if (context.closing) {
      throw new ForebayError("shutting_down", "this server is shutting down; try again");
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
    if (this.expectsContinue) {
      this.response.writeContinue();
    }
    this.bodyTaken = true;
    this.request.takeBody(bytesMax, this.context.held, sink);
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

  /** What every answer's head has, then `own`; flat. */
  headersWith(own: readonly string[]): string[] {
    const headers = this.context.web.forOrigin(this.head.get("origin")).concat(own);
    if (this.context.closing) {
      headers.push("connection", "close");
    }
    return headers;
  }

  /** All header fields of a reply, with its length. */
  headersOf(reply: Reply): string[] {
    const headers = this.headersWith(reply.headers);
    if (reply.body !== null) {
      headers.push("content-length", String(Buffer.byteLength(reply.body)));
    } else if (reply.status !== 204 && reply.status !== 304 && this.request.method !== "HEAD") {
      headers.push("content-length", "0");
    }
    return headers;
  }

  /** Writes the answer. One that nobody waits for any more is counted all the same. */
  send(reply: Reply): void {
    const { response } = this;
    this.context.counters.answered(this.route, reply.status);
    if (response.destroyed || response.writableEnded) {
      return;
    }
    response.writeHead(reply.status, this.headersOf(reply));
    if (reply.body === null) {
      response.end();
    } else {
      response.end(reply.body);
    }
  }

  refuse(error: ForebayError): void {
    this.send(problemReply(error));
  }
}
