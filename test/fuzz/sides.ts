import { setImmediate as turn } from "node:timers/promises";
import { httpServer, listen } from "../../origin/front/server.ts";
import { Handler, settings, startFront, type Seen } from "../origin/front/frontUnderTest.ts";
import { Peer } from "../origin/front/peer.ts";

/** One server under the same bytes as another. */
export interface Side {
  readonly handler: Handler;
  readonly port: number;
  close(): Promise<void>;
}

/** A larger body is refused; both sides then let its rest pass. */
const bodyBytesMax = 1000;

function plainHandler(): Handler {
  const handler = new Handler();
  handler.bodyBytesMax = bodyBytesMax;
  handler.answerBody = () => "";
  return handler;
}

export const frontSide = (): Promise<Side> => startFront({}, { handler: plainHandler() });

/** The same server without the recogniser before it. */
export async function nodeSide(): Promise<Side> {
  const handler = plainHandler();
  const server = httpServer(settings, (channel) => {
    handler.take(channel, "http");
    channel.drainUntaken();
  });
  const port = await listen(server, "127.0.0.1", 0);
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { handler, port, close };
}

/** What became of one connection's bytes at one side. */
export interface Outcome {
  readonly seen: readonly Seen[];
  /** Of all final answers, in their order. */
  readonly statuses: readonly string[];
  /** The server ended the connection. */
  readonly ended: boolean;
}

/**
 * Sends the pieces, each as far as may be a read of its own, then the end; waits for the server's end.
 *
 * @param late answers are given a turn of the event loop after their request, or later
 */
export async function converse(
  { handler, port }: Side,
  pieces: readonly string[],
  late: boolean,
): Promise<Outcome> {
  handler.seen.length = 0;
  handler.holding = late;
  const peer = await Peer.open(port);
  const until = performance.now() + 5000;
  for (const piece of pieces) {
    void peer.send(piece);
    await turn();
    handler.release();
  }
  peer.end();
  while (!peer.closed && performance.now() < until) {
    await turn();
    handler.release();
  }
  const ended = peer.closed;
  peer.destroy();
  const statuses = peer.statuses.filter((status) => status !== "100");
  return { seen: [...handler.seen], statuses, ended };
}
