import { connect, type Socket } from "node:net";

/** One end of a connection, byte for byte. Ending its half leaves the other open. */
export class Peer {
  readonly socket: Socket;
  /** All that came, as latin1. */
  text = "";
  /** The other side has sent its end. */
  ended = false;
  closed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (chunk) => (this.text += chunk.toString("latin1")));
    socket.on("end", () => {
      this.ended = true;
      socket.end();
    });
    socket.on("error", () => {});
    socket.on("close", () => (this.closed = true));
  }

  static async open(port: number): Promise<Peer> {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    await new Promise((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    return new Peer(socket);
  }

  /** Resolves when the bytes are with the kernel. */
  send(bytes: string | Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      const data = typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes;
      this.socket.write(data, () => resolve());
    });
  }

  /** Sends the end of this half. */
  end(): void {
    this.socket.end();
  }

  get statuses(): string[] {
    return [...this.text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => String(match[1]));
  }

  destroy(): void {
    this.socket.destroy();
  }
}
