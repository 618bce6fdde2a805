import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { ForebayError, type ErrorCode } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import { ForebayIncoming } from "./incoming.ts";
import { NodeChannel } from "./nodeChannel.ts";
import type { FrontSettings } from "./types.ts";
import { refusal } from "./wire.ts";

/** The parser counts URL and fields together; each is checked by itself afterwards, by who handles the request. */
const parserBytesMax = limits.urlBytesMax + limits.headerBytesMax + 1024;

/** node:http with its timeouts and caps. */
export function httpServer(
  settings: FrontSettings,
  onRequest: (channel: NodeChannel) => void,
): Server {
  const server = createServer({
    IncomingMessage: ForebayIncoming,
    maxHeaderSize: parserBytesMax,
    // Checked by who handles the request, where it gets an answer with a code.
    requireHostHeader: false,
    headersTimeout: settings.headersTimeoutMs,
    requestTimeout: settings.requestTimeoutMs,
    keepAliveTimeout: settings.keepAliveTimeoutMs,
    // node:http's own timer, the only periodic one of the process: it enforces the two timeouts above.
    connectionsCheckingInterval: settings.timeoutCheckMs,
  });
  server.maxConnections = settings.maxConnections;
  // Bytes are bounded; fields beyond a count would be dropped without a word.
  server.maxHeadersCount = 0;
  const take =
    (expectsContinue: boolean) =>
    (request: ForebayIncoming, response: ServerResponse): void =>
      onRequest(new NodeChannel(request, response, expectsContinue));
  server.on("request", take(false));
  server.on("checkContinue", take(true));
  // Other expectations may be ignored (RFC 9110 §10.1.1).
  server.on("checkExpectation", take(false));
  server.on("connect", (_request, socket: Socket) => onConnect(socket));
  server.on("clientError", (error, socket) => onClientError(error, socket as Socket));
  return server;
}

/** @throws ForebayError `port_taken` | `config_invalid`; resolves to the port */
export function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", (error) => reject(listenError(error, host, port)));
    server.listen(port, host, () => {
      server.removeAllListeners("error");
      resolve((server.address() as AddressInfo).port);
    });
  });
}

function listenError(error: Error, host: string, port: number): ForebayError {
  const code = "code" in error ? String(error.code) : "";
  if (code === "EADDRINUSE") {
    const message = `port ${port} of ${host} is taken by another process; choose one with --port, or 0 for any free one`;
    return new ForebayError("port_taken", message, { cause: error });
  }
  if (code === "EACCES") {
    const message = `this user may not bind port ${port}; choose one from 1024 on with --port`;
    return new ForebayError("port_taken", message, { cause: error });
  }
  const message = `cannot listen on ${host}:${port} (${code}); --host names an address of this machine`;
  return new ForebayError("config_invalid", message, { cause: error });
}

/** CONNECT asks for a tunnel; node:http has let go of the socket, which it would close without a word. */
function onConnect(socket: Socket): void {
  socket.on("error", () => {});
  if (!socket.writable || answerPending(socket)) {
    socket.destroy();
    return;
  }
  const detail = "CONNECT is not allowed: this is no proxy";
  socket.end(
    refusal("method_not_allowed", detail, { allow: "GET, HEAD, POST, PUT, DELETE, OPTIONS" }),
    "latin1",
  );
  socket.destroySoon();
}

/** What the parser itself refuses, answered as far as an answer can still be told from another one. */
function onClientError(error: Error & { code?: string; rawPacket?: Buffer }, socket: Socket): void {
  if (!socket.writable || answerPending(socket)) {
    socket.destroy();
    return;
  }
  const { code, detail } = refusalFor(error);
  socket.end(refusal(code, detail), "latin1");
  // What is still coming is not read any more; without this the socket would wait for its end.
  socket.destroySoon();
}

/**
 * Whether an answer to a complete request is due or has begun on this socket. One written now would be taken for
 * it. (`_httpMessage` is node:http's own way to know; its own handler of this event looks there too.)
 */
function answerPending(socket: Socket): boolean {
  const { _httpMessage: response } = socket as { _httpMessage?: ServerResponse | null };
  return (
    response !== null && response !== undefined && (response.headersSent || response.req.complete)
  );
}

function refusalFor(error: { code?: string; message: string; rawPacket?: Buffer }): {
  code: ErrorCode;
  detail: string;
} {
  switch (error.code) {
    case "HPE_HEADER_OVERFLOW": {
      const start = error.rawPacket?.subarray(0, limits.urlBytesMax);
      return start !== undefined && start.length === limits.urlBytesMax && !start.includes("\n")
        ? { code: "url_too_long", detail: `the URL may have ${limits.urlBytesMax} bytes` }
        : {
            code: "headers_too_large",
            detail: `the header fields may have ${limits.headerBytesMax} bytes`,
          };
    }
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return { code: "body_too_large", detail: "the chunk extensions are too long" };
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return { code: "request_timeout", detail: "the request took too long to arrive" };
    default:
      return { code: "bad_request", detail: `this is not HTTP: ${error.code ?? error.message}` };
  }
}
