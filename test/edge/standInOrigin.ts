import { catalogue, type ErrorCode } from "../../shared/errors/mod.ts";
import {
  decodeMessages,
  encodeMessage,
  frameFlag,
  type Frame,
  type FrameRequest,
  type RequestResult,
} from "../../shared/frame/mod.ts";

interface Forwarded {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly body: string;
}

/**
 * Stands in for the origin in tests of the Worker: it takes the place of the global fetch, reads and writes the real frame
 * link, and counts. Streams are lists of records; an append to `refuse/<code>` is refused with that code. Frames of outboxes
 * get no answer: nothing listens.
 */
export class StandInOrigin {
  readonly frames: (readonly FrameRequest[])[] = [];
  readonly records = new Map<string, string[]>();
  readonly forwarded: Forwarded[] = [];
  probes = 0;
  delayMs = 0;
  /** Takes the place of the answer to a direct frame. */
  onFrame: ((frame: Frame) => Response | Promise<Response>) | null = null;
  /** Answers whatever is not a frame; null when nothing listens. */
  onOther: ((request: Request) => Response | Promise<Response>) | null = () => new Response("ok");

  /** For good: what an outbox sends later must not leave the test either. */
  install(): void {
    globalThis.fetch = (input, init) => this.#fetch(new Request(input, init as RequestInit));
  }

  async #fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/livez") {
      this.probes += 1;
    }
    if (pathname !== "/v1/frames") {
      return await this.#forward(request);
    }
    const message = decodeMessages(new Uint8Array(await request.arrayBuffer()))[0];
    if (message?.type !== "frame" || (message.frame.flags & frameFlag.direct) === 0) {
      throw new Error("Network connection lost.");
    }
    this.frames.push(message.frame.requests);
    if (this.delayMs > 0) {
      await new Promise((resolve) => setTimeout(resolve, this.delayMs));
    }
    return this.onFrame === null
      ? resultsResponse(message.frame.requests.map((each) => this.#append(each)))
      : await this.onFrame(message.frame);
  }

  async #forward(request: Request): Promise<Response> {
    if (this.onOther === null) {
      throw new Error("Network connection lost.");
    }
    const body = await request.clone().text();
    this.forwarded.push({
      method: request.method,
      url: request.url,
      headers: request.headers,
      body,
    });
    return await this.onOther(request);
  }

  #append({ stream, records, producer }: FrameRequest): RequestResult {
    const refused = /^refuse\/(.*)$/.exec(stream)?.[1] as ErrorCode | undefined;
    if (refused !== undefined) {
      const headers = { "stream-next-offset": "7" };
      return {
        status: catalogue[refused].status,
        code: refused,
        detail: `refused: ${refused}`,
        headers,
      };
    }
    const kept = this.records.get(stream) ?? [];
    this.records.set(stream, kept);
    kept.push(...records.map((record) => new TextDecoder().decode(record)));
    const headers = { "stream-next-offset": String(kept.length) };
    return { status: producer === null ? 204 : 200, code: null, detail: null, headers };
  }
}

export function resultsResponse(results: readonly RequestResult[]): Response {
  return new Response(encodeMessage({ type: "results", results }));
}
