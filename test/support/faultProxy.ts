import { createServer, connect, type AddressInfo, type Socket } from "node:net";

/** What happens to one connection. `after`: bytes that pass in that direction before it happens. */
export type Fault =
  | { readonly kind: "none" }
  /** Every chunk, both ways, comes so much later. */
  | { readonly kind: "latency"; readonly ms: number }
  | { readonly kind: "throttle"; readonly bytesPerSecond: number }
  /** Both ends are reset. */
  | { readonly kind: "cut"; readonly side: Side; readonly after: number }
  /** The receiver sees an orderly end (FIN) in this direction; the other one stays open. */
  | { readonly kind: "halfClose"; readonly side: Side; readonly after: number }
  /** The receiver sees an orderly end in the middle of the bytes, and both ends are closed. */
  | { readonly kind: "truncate"; readonly side: Side; readonly after: number }
  /** Bytes are taken, and nothing comes through any more either way; reset after `ms`. */
  | { readonly kind: "blackhole"; readonly side: Side; readonly after: number; readonly ms: number }
  /** This direction pauses for `ms`. */
  | { readonly kind: "stall"; readonly side: Side; readonly after: number; readonly ms: number }
  /** When the connection has ended, all that the client sent goes to the server once more, and the reply nowhere. */
  | { readonly kind: "duplicate" };

export type Side = "request" | "reply";

/** Draws the fault of a new connection. */
export type FaultPlan = () => Fault;

export const noFault: FaultPlan = () => ({ kind: "none" });

/** How much of a connection is kept to be sent twice. */
const duplicateBytesMax = 4 * 1024 * 1024;
const duplicateMs = 2000;

/** A TCP relay in front of a server. Each connection meets the fault that the plan draws for it. */
export class FaultProxy {
  plan: FaultPlan;
  /** Connections by the kind of their fault. */
  readonly drawn = new Map<Fault["kind"], number>();
  readonly #port: number;
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer({ allowHalfOpen: true }, (client) => this.#relay(client));

  constructor(port: number, plan: FaultPlan = noFault) {
    this.#port = port;
    this.plan = plan;
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this.url;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** From now on; connections that are there are reset. */
  set(plan: FaultPlan): void {
    this.plan = plan;
    for (const socket of this.#sockets) {
      socket.resetAndDestroy();
    }
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.set(noFault);
    await closed;
  }

  #relay(client: Socket): void {
    const fault = this.plan();
    this.drawn.set(fault.kind, (this.drawn.get(fault.kind) ?? 0) + 1);
    const server = this.#connect();
    this.#keep(client);
    const reset = (): void => {
      client.resetAndDestroy();
      server.resetAndDestroy();
    };
    if (fault.kind === "duplicate") {
      this.#sendAgain(client);
    }
    const request = new Pipe(client, server, bend(fault, "request"), reset);
    const reply = new Pipe(server, client, bend(fault, "reply"), reset);
    // What is delayed still goes out before its connection does.
    client.on("close", () => request.finish());
    server.on("close", () => reply.finish());
  }

  #connect(): Socket {
    const server = connect({ port: this.#port, host: "127.0.0.1", allowHalfOpen: true });
    this.#keep(server);
    return server;
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#sockets.delete(socket));
  }

  #sendAgain(client: Socket): void {
    const sent: Buffer[] = [];
    let bytes = 0;
    client.on("data", (chunk) => {
      bytes += chunk.length;
      if (bytes <= duplicateBytesMax) {
        sent.push(chunk);
      }
    });
    client.once("close", () => {
      if (sent.length > 0 && this.#server.listening) {
        const server = this.#connect();
        server.resume();
        server.write(Buffer.concat(sent));
        setTimeout(() => server.destroy(), duplicateMs).unref();
      }
    });
  }
}

/** What a fault does to one direction of its connection. */
interface Bend {
  readonly delayMs: number;
  readonly bytesPerSecond: number;
  /** After so many bytes `deed` happens, once. */
  readonly after: number;
  readonly deed: "reset" | "end" | "close" | "swallow" | "pause" | null;
  readonly ms: number;
}

const straight: Bend = { delayMs: 0, bytesPerSecond: Infinity, after: Infinity, deed: null, ms: 0 };
const deeds = {
  cut: "reset",
  halfClose: "end",
  truncate: "close",
  blackhole: "swallow",
  stall: "pause",
} as const;

function bend(fault: Fault, side: Side): Bend {
  switch (fault.kind) {
    case "none":
    case "duplicate":
      return straight;
    case "latency":
      return { ...straight, delayMs: fault.ms };
    case "throttle":
      return { ...straight, bytesPerSecond: fault.bytesPerSecond };
    case "cut":
    case "halfClose":
    case "truncate":
    case "blackhole":
    case "stall": {
      const ms = "ms" in fault ? fault.ms : 0;
      return fault.side === side
        ? { ...straight, after: fault.after, deed: deeds[fault.kind], ms }
        : straight;
    }
  }
}

/** One direction of a connection: bytes in order, bent as told. */
class Pipe {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #bend: Bend;
  readonly #reset: () => void;
  #passed = 0;
  #done = false;
  /** The last chunk's turn. Never rejects. */
  #turn: Promise<void> = Promise.resolve();

  constructor(from: Socket, to: Socket, bent: Bend, reset: () => void) {
    this.#from = from;
    this.#to = to;
    this.#bend = bent;
    this.#reset = reset;
    from.on("data", (chunk) => {
      from.pause();
      this.#turn = this.#turn.then(async () => {
        await this.#pass(chunk);
        from.resume();
      });
    });
    from.on("end", () => {
      this.#turn = this.#turn.then(() => {
        if (!this.#done) {
          to.end();
        }
      });
    });
  }

  /** The sender is gone: what it sent goes on, then the receiver goes too. */
  finish(): void {
    void this.#turn.then(() => this.#to.destroySoon());
  }

  async #pass(chunk: Buffer): Promise<void> {
    const { delayMs, bytesPerSecond, after, deed } = this.#bend;
    await sleep(delayMs + (chunk.length / bytesPerSecond) * 1000);
    if (this.#done) {
      return;
    }
    const room = after - this.#passed;
    if (deed === null || chunk.length < room) {
      this.#passed += chunk.length;
      await this.#write(chunk);
      return;
    }
    await this.#write(chunk.subarray(0, room));
    this.#passed = after;
    await this.#happen(deed, chunk.subarray(room));
  }

  async #happen(deed: NonNullable<Bend["deed"]>, rest: Buffer): Promise<void> {
    switch (deed) {
      case "reset":
        this.#done = true;
        await sleep(2);
        this.#reset();
        return;
      case "end":
        this.#done = true;
        this.#to.end();
        return;
      case "close":
        this.#done = true;
        this.#to.end();
        await sleep(20);
        this.#from.destroy();
        return;
      case "swallow":
        this.#done = true;
        // What the other side says from now on goes nowhere either.
        this.#to.pause();
        setTimeout(this.#reset, this.#bend.ms).unref();
        return;
      case "pause":
        this.#passed = -Infinity;
        await sleep(this.#bend.ms);
        await this.#write(rest);
        return;
    }
  }

  async #write(chunk: Uint8Array): Promise<void> {
    if (chunk.length > 0 && !this.#to.destroyed && !this.#to.write(chunk)) {
      await new Promise<void>((resolve) => {
        this.#to.once("drain", resolve);
        this.#to.once("close", resolve);
      });
    }
  }
}

const sleep = (ms: number): Promise<void> =>
  ms <= 0 ? Promise.resolve() : new Promise((resolve) => setTimeout(resolve, ms));

/** Faults at random, some two in five connections without one. `holdMs` bounds what hangs. */
export function storm(random: () => number, holdMs: number): FaultPlan {
  const below = (n: number): number => Math.floor(random() * n);
  const side = (): Side => (random() < 0.5 ? "request" : "reply");
  const after = (): number => Math.floor(30_000 * random() ** 3);
  const faults: readonly (() => Fault)[] = [
    () => ({ kind: "latency", ms: 1 + below(60) }),
    () => ({ kind: "throttle", bytesPerSecond: 20_000 + below(200_000) }),
    () => ({ kind: "cut", side: side(), after: after() }),
    () => ({ kind: "halfClose", side: side(), after: after() }),
    () => ({ kind: "truncate", side: side(), after: after() }),
    () => ({ kind: "blackhole", side: side(), after: after(), ms: below(holdMs) }),
    () => ({ kind: "stall", side: side(), after: after(), ms: below(holdMs) }),
    () => ({ kind: "duplicate" }),
  ];
  return () => {
    const draw = below(13);
    return draw < 5 ? { kind: "none" } : (faults[draw - 5] ?? noFault)();
  };
}
