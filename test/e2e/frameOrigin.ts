import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { problemJson } from "../../shared/errors/mod.ts";
import {
  decodeMessages,
  encodeMessage,
  frameFlag,
  type FrameRequest,
  type RequestResult,
} from "../../shared/frame/mod.ts";
import { framesContentType } from "../../shared/protocol/mod.ts";

/** What the stand-in does with one POST of a direct frame. */
export type FrameFault =
  | "none"
  | "cutBeforeReading"
  | "cutAfterApplying"
  | "truncateReply"
  | "stall";

/**
 * Stands in for the origin where a test must count frames exactly or break the link at one point. It speaks the real
 * frame link for direct frames; streams are lists, and a request is refused when its stream starts with `refuse/`.
 * Outboxes are told to come back later.
 */
export class FrameOrigin {
  readonly frames: (readonly FrameRequest[])[] = [];
  /** Records applied per stream, as text. */
  readonly applied = new Map<string, string[]>();
  fault: FrameFault = "none";
  delayMs = 0;
  /** Answers whatever is not a frame. */
  other: (request: IncomingMessage, response: ServerResponse) => void = (_request, response) =>
    response.end("ok");
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((request, response) => this.#take(request, response));

  async listen(port = 0): Promise<string> {
    this.#server.keepAliveTimeout = 60_000;
    this.#server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve) => this.#server.listen(port, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) {
      socket.destroy();
    }
    await closed;
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    if (request.url === "/v1/frames" && this.fault === "cutBeforeReading") {
      request.socket.destroy();
      return;
    }
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      if (request.url === "/v1/frames") {
        this.#takeFrames(request, response, Buffer.concat(chunks));
      } else {
        this.other(request, response);
      }
    });
  }

  #takeFrames(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
    const [message] = decodeMessages(body);
    if (message?.type !== "frame" || (message.frame.flags & frameFlag.direct) === 0) {
      response.writeHead(503, { "content-type": "application/problem+json", "retry-after": "1" });
      response.end(problemJson("shutting_down", "no outbox is served here"));
      return;
    }
    const results = this.#apply(message.frame.requests);
    setTimeout(() => this.#reply(request, response, results), this.delayMs);
  }

  #apply(requests: readonly FrameRequest[]): RequestResult[] {
    this.frames.push(requests);
    return requests.map(({ stream, records }) => {
      if (stream.startsWith("refuse/")) {
        const headers = { "stream-closed": "true" };
        return { status: 409, code: "stream_closed", detail: `${stream} is closed`, headers };
      }
      const kept = this.applied.get(stream) ?? [];
      this.applied.set(stream, kept);
      kept.push(...records.map((record) => Buffer.from(record).toString()));
      const headers = { "stream-next-offset": String(kept.length) };
      return { status: 204, code: null, detail: null, headers };
    });
  }

  #reply(
    request: IncomingMessage,
    response: ServerResponse,
    results: readonly RequestResult[],
  ): void {
    if (this.fault === "cutAfterApplying") {
      request.socket.destroy();
    }
    if (this.fault === "cutAfterApplying" || this.fault === "stall") {
      return;
    }
    const bytes = encodeMessage({ type: "results", results });
    response.writeHead(200, { "content-type": framesContentType, "content-length": bytes.length });
    if (this.fault === "truncateReply") {
      response.write(bytes.subarray(0, bytes.length - 3), () => request.socket.destroy());
    } else {
      response.end(bytes);
    }
  }
}
