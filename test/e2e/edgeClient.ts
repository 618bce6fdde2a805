import { Agent, request } from "node:http";

export interface Reply {
  /** 0 when the client went away before an answer came. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

export interface Sending {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** The socket is destroyed after this time, ms. */
  readonly abortAfterMs?: number;
}

/** A client over plain sockets, because fetch hides what happens to a connection. */
export class EdgeClient {
  readonly #url: string;
  readonly #agent: Agent;

  constructor(url: string, connections = 64) {
    this.#url = url;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  send(path: string, sending: Sending = {}): Promise<Reply> {
    const {
      method = "POST",
      headers = { "content-type": "text/plain" },
      body,
      abortAfterMs,
    } = sending;
    return new Promise((resolve, reject) => {
      const outgoing = request(
        this.#url + path,
        { method, headers, agent: this.#agent },
        (incoming) => {
          const chunks: Buffer[] = [];
          incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
          incoming.on("error", failed);
          incoming.on("end", () => {
            resolve({
              status: incoming.statusCode ?? 0,
              headers: incoming.headers,
              body: Buffer.concat(chunks).toString(),
            });
          });
        },
      );
      const failed = (error: Error): void => {
        if (abortAfterMs === undefined) {
          reject(error);
        } else {
          resolve({ status: 0, headers: {}, body: "" });
        }
      };
      outgoing.on("error", failed);
      outgoing.end(body);
      if (abortAfterMs !== undefined) {
        setTimeout(() => outgoing.destroy(), abortAfterMs);
      }
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

export interface LaneCounters {
  readonly requests: number;
  readonly flights: number;
  readonly flownRequests: number;
  readonly queued: number;
  readonly inFlight: number;
  readonly lostFlights: number;
  readonly abandoned: number;
}

/** What the edge's isolate counts, from its /readyz. */
export interface EdgeCounters {
  readonly pendingBytes: number;
  readonly lanes: Readonly<Record<string, LaneCounters>>;
  readonly unacknowledged: {
    readonly taken: number;
    readonly landed: number;
    readonly refused: number;
  };
}
