import type { ServerResponse } from "node:http";
import type { BodySink, HeldBytes } from "./body.ts";
import type { Channel } from "./channel.ts";
import { Head } from "./head.ts";
import type { HeaderBlock } from "./headerBlock.ts";
import type { ForebayIncoming } from "./incoming.ts";
import { originForm, Target } from "./target.ts";

/** A request that came by node:http. */
export class NodeChannel implements Channel {
  readonly request: ForebayIncoming;
  readonly response: ServerResponse;
  readonly head: Head;
  readonly target: Target;
  readonly url: string;
  /** The client waits for `100 Continue` before it sends the body. */
  readonly #expectsContinue: boolean;
  #bodyTaken = false;

  constructor(request: ForebayIncoming, response: ServerResponse, expectsContinue: boolean) {
    this.request = request;
    this.response = response;
    this.#expectsContinue = expectsContinue;
    this.url = originForm(request.url ?? "/");
    request.url = this.url;
    this.head = Head.ofRaw(request.rawHeaders);
    this.target = new Target(this.url);
  }

  get method(): string {
    return this.request.method ?? "";
  }

  get httpVersion(): string {
    return this.request.httpVersion;
  }

  takeBody(bytesMax: number, held: HeldBytes, sink: BodySink): void {
    if (this.#expectsContinue) {
      this.response.writeContinue();
    }
    this.#bodyTaken = true;
    this.request.takeBody(bytesMax, held, sink);
  }

  /** Call when the request's handler has had its turn: a body nobody took must pass all the same. */
  drainUntaken(): void {
    if (!this.#bodyTaken) {
      this.request.drainBody();
    }
  }

  answer(
    status: number,
    shared: HeaderBlock,
    own: readonly string[],
    body: Uint8Array<ArrayBuffer> | string | null,
  ): void {
    const { response } = this;
    if (response.destroyed || response.writableEnded) {
      return;
    }
    response.writeHead(status, shared.flat.concat(own));
    if (body === null) {
      response.end();
    } else {
      response.end(body);
    }
  }
}
