import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Clock, Timer } from "../../shared/ports/mod.ts";
import type { Channel } from "./channel.ts";
import { Connection, type ConnectionHost } from "./connection.ts";
import type { NodeChannel } from "./nodeChannel.ts";
import { httpServer, listen } from "./server.ts";
import type { FrontSettings } from "./types.ts";

export interface FrontOptions {
  readonly clock: Clock;
  readonly settings: FrontSettings;
  /** A POST of an append or of frames that the recogniser read. */
  onRecognised(channel: Channel): void;
  /** Any other request. */
  onRequest(channel: NodeChannel): void;
  /** Connections are cut because the deadline of `close` has passed. */
  onCut(): void;
}

/**
 * The listening socket. Each connection begins with the recogniser and stays with it until it sends something else;
 * node:http has it from there on. One timer, armed for the earliest moment a connection is due.
 */
export class Front implements ConnectionHost {
  closing = false;
  readonly settings: FrontSettings;
  readonly #clock: Clock;
  readonly #options: FrontOptions;
  readonly #server: Server;
  readonly #toNodeHttp: (socket: Socket) => void;
  readonly #connections = new Set<Connection>();
  #timer: Timer | null = null;
  #timerAt = Infinity;
  /** Of the answers of one second. */
  #fields = "";
  #fieldsSecond = -1;

  constructor(options: FrontOptions) {
    this.#clock = options.clock;
    this.settings = options.settings;
    this.#options = options;
    this.#server = httpServer(options.settings, (channel) => options.onRequest(channel));
    // node:http takes a connection by a listener of this event; it is called when the recogniser is done with it.
    const listeners = this.#server.listeners("connection") as ((socket: Socket) => void)[];
    this.#toNodeHttp = (socket) => {
      for (const each of listeners) {
        each.call(this.#server, socket);
      }
    };
    this.#server.removeAllListeners("connection");
    this.#server.on("connection", (socket: Socket) => this.#accept(socket));
  }

  /**
   * @returns the port bound
   * @throws ForebayError `port_taken` | `config_invalid`
   */
  listen(host: string, port: number): Promise<number> {
    return listen(this.#server, host, port);
  }

  /** Accepts nothing more and lets what runs finish; what is open at the deadline is cut. */
  close(deadlineMs: number): Promise<void> {
    this.closing = true;
    this.#fieldsSecond = -1;
    return new Promise((resolve) => {
      const deadline = this.#clock.after(deadlineMs, () => {
        this.#options.onCut();
        this.#server.closeAllConnections();
        for (const connection of this.#connections) {
          connection.cut();
        }
      });
      this.#server.close(() => {
        deadline.cancel();
        this.#timer?.cancel();
        resolve();
      });
      this.closeIdle();
    });
  }

  closeIdle(): void {
    this.#server.closeIdleConnections();
    for (const connection of this.#connections) {
      if (connection.idle) {
        connection.end();
      }
    }
  }

  now(): number {
    return this.#clock.now();
  }

  ownFields(): string {
    const now = this.#clock.now();
    const second = Math.floor(now / 1000);
    if (second !== this.#fieldsSecond) {
      this.#fieldsSecond = second;
      this.#fields = this.#ownFields(now);
    }
    return this.#fields;
  }

  onRequest(channel: Channel): void {
    this.#options.onRecognised(channel);
  }

  handOver(connection: Connection, socket: Socket, bytes: Buffer): void {
    this.forget(connection);
    // node:http gets the bytes back as the next ones read: paused, a listener on 'data' does not start the flow by itself.
    socket.pause();
    socket.unshift(bytes);
    this.#toNodeHttp(socket);
    process.nextTick(() => socket.resume());
  }

  watch({ dueAt }: Connection): void {
    if (dueAt >= this.#timerAt) {
      return;
    }
    this.#timer?.cancel();
    this.#timerAt = dueAt;
    this.#timer = this.#clock.after(Math.max(1, dueAt - this.now()), () => this.#expire());
  }

  forget(connection: Connection): void {
    this.#connections.delete(connection);
  }

  #accept(socket: Socket): void {
    const connection = new Connection(this, socket);
    this.#connections.add(connection);
    this.watch(connection);
  }

  /** A due time that moved back leaves the timer as it is, so it may find nobody due yet. */
  #expire(): void {
    this.#timerAt = Infinity;
    this.#timer = null;
    const now = this.now();
    let next: Connection | null = null;
    for (const connection of this.#connections) {
      if (connection.dueAt <= now) {
        connection.expire();
      } else if (connection.dueAt < (next?.dueAt ?? Infinity)) {
        next = connection;
      }
    }
    if (next !== null) {
      this.watch(next);
    }
  }

  /** Whether more may follow on a connection is the handler's to say once the front closes. */
  #ownFields(now: number): string {
    const date = `date: ${new Date(now).toUTCString()}\r\n`;
    const seconds = Math.floor(this.settings.keepAliveTimeoutMs / 1000);
    return this.closing
      ? date
      : `${date}connection: keep-alive\r\nkeep-alive: timeout=${seconds}\r\n`;
  }
}
