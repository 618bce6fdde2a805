import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import {
  decodeMessages,
  encodeMessage,
  type FrameRequest,
  type RequestResult,
} from "../../shared/frame/mod.ts";
import { framesContentType } from "../../shared/protocol/mod.ts";

/** What the stand-in does with one POST of a frame. */
export type FrameFault =
  | "none"
  | "cutBeforeReading"
  | "cutAfterApplying"
  | "truncateReply"
  | "stall";

/**
 * Stands in for the origin where a test must count frames exactly or break the link at one point. It speaks the real
 * frame link; streams are counters, and a request is refused when its stream starts with `refuse/`.
 */
export class FrameOrigin {
  readonly frames: (readonly FrameRequest[])[] = [];
  /** Records applied per stream, as text. */
  readonly applied = new Map<string, string[]>();
  readonly seen: {
    readonly method: string;
    readonly url: string;
    readonly headers: IncomingMessage["headers"];
    readonly body: string;
  }[] = [];
  fault: FrameFault = "none";
  delayMs = 0;
  /** Answers whatever is not a frame. */
  other: (request: IncomingMessage, response: ServerResponse) => void = (_request, response) =>
    response.end("ok");
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((request, response) => {
    if (request.url === "/v1/frames" && this.fault === "cutBeforeReading") {
      request.socket.destroy();
      return;
    }
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => this.#answer(request, response, Buffer.concat(chunks)));
  });

  async listen(port = 0): Promise<string> {
    this.#server.keepAliveTimeout = 60_000;
    this.#server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve) => this.#server.listen(port, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  connections(): number {
    return this.#sockets.size;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) {
      socket.destroy();
    }
    await closed;
  }

  #answer(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
    if (request.url !== "/v1/frames") {
      this.seen.push({
        method: request.method ?? "",
        url: request.url ?? "",
        headers: request.headers,
        body: body.toString(),
      });
      this.other(request, response);
      return;
    }
    this.seen.push({ method: "POST", url: "/v1/frames", headers: request.headers, body: "" });
    const results = decodeMessages(body).flatMap((message) =>
      message.type === "frame" ? [this.#apply(message.frame.requests)] : [],
    );
    setTimeout(() => this.#reply(request, response, results[0] ?? []), this.delayMs);
  }

  #apply(requests: readonly FrameRequest[]): RequestResult[] {
    this.frames.push(
      requests.map((each) => ({ ...each, records: each.records.map((record) => record.slice()) })),
    );
    return requests.map((each) => {
      if (each.stream.startsWith("refuse/")) {
        return {
          status: 409,
          code: "stream_closed",
          detail: `${each.stream} is closed`,
          headers: { "stream-closed": "true" },
        };
      }
      const records = this.applied.get(each.stream) ?? [];
      this.applied.set(each.stream, records);
      records.push(...each.records.map((record) => Buffer.from(record).toString()));
      return {
        status: 204,
        code: null,
        detail: null,
        headers: { "stream-next-offset": String(records.length) },
      };
    });
  }

  #reply(request: IncomingMessage, response: ServerResponse, results: RequestResult[]): void {
    const bytes = encodeMessage({ type: "results", results });
    switch (this.fault) {
      case "cutAfterApplying":
        request.socket.destroy();
        return;
      case "truncateReply":
        response.writeHead(200, {
          "content-type": framesContentType,
          "content-length": bytes.length,
        });
        response.write(bytes.subarray(0, bytes.length - 3));
        setTimeout(() => request.socket.destroy(), 20);
        return;
      case "stall":
        return;
      default:
        response.writeHead(200, {
          "content-type": framesContentType,
          "content-length": bytes.length,
        });
        response.end(bytes);
    }
  }
}
