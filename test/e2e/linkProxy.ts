import { createServer, connect, type AddressInfo, type Socket } from "node:net";

/**
 * What happens to the connections between edge and origin. `refuse`: nothing listens behind. `stall`: bytes are taken and
 * none comes back. `cutRequest`: reset after 300 bytes of the request. `cutReply`: reset instead of the reply's first byte.
 * `truncateReply`: reset instead of its last five bytes.
 */
export type LinkMode = "pass" | "refuse" | "stall" | "cutRequest" | "cutReply" | "truncateReply";

/** A TCP relay in front of the origin, whose faults are switched by the test. */
export class LinkProxy {
  mode: LinkMode = "pass";
  /** Connections made so far. */
  connections = 0;
  readonly #port: number;
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((client) => this.#relay(client));

  constructor(originPort: number) {
    this.#port = originPort;
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** From now on; connections that are there are reset. */
  set(mode: LinkMode): void {
    this.mode = mode;
    for (const socket of this.#sockets) {
      socket.resetAndDestroy();
    }
  }

  open(): number {
    return this.#sockets.size;
  }

  async close(): Promise<void> {
    this.set("refuse");
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #relay(client: Socket): void {
    this.connections += 1;
    const { mode } = this;
    this.#keep(client);
    if (mode === "refuse") {
      client.resetAndDestroy();
      return;
    }
    if (mode === "stall") {
      client.resume();
      return;
    }
    const origin = connect(this.#port, "127.0.0.1");
    this.#keep(origin);
    const end = (): void => {
      client.destroy();
      origin.destroy();
    };
    origin.on("close", end);
    client.on("close", end);
    pour(client, origin, mode === "cutRequest" ? (bytes) => 300 - bytes : passAll);
    pour(origin, client, replyCut[mode] ?? passAll);
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#sockets.delete(socket));
  }
}

/** How many bytes of the next chunk go on, given how many came before it and how long it is. */
type Cut = (before: number, length: number) => number;

const passAll: Cut = () => Infinity;
const replyCut: Partial<Record<LinkMode, Cut>> = {
  cutReply: () => 0,
  // The origin's replies here are small and come in one chunk.
  truncateReply: (_before, length) => length - 5,
};

/** Copies bytes; a chunk that does not go on whole is the last one, and both ends are reset. */
function pour(from: Socket, to: Socket, cut: Cut): void {
  let before = 0;
  from.on("data", (chunk) => {
    const whole = chunk.subarray(0, Math.max(0, cut(before, chunk.length)));
    to.write(whole);
    before += chunk.length;
    if (whole.length < chunk.length) {
      setTimeout(() => {
        from.resetAndDestroy();
        to.resetAndDestroy();
      }, 5);
    }
  });
}
