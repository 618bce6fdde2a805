import { catalogue, type ErrorCode } from "../../../shared/errors/mod.ts";
import {
  decodeMessages,
  encodeMessage,
  frameFlag,
  type Frame,
  type Hello,
  type LinkMessage,
} from "../../../shared/frame/mod.ts";

interface KnownEpoch {
  durable: number;
  helloBoot: number;
  frameBoot: number;
}

interface SaidAck {
  readonly buffer: string;
  readonly epoch: string;
  readonly durable: number;
}

/** What happens to a POST instead of its answer. `dropReply`: applied, and the answer lost. `truncate`: half of it comes. */
export type LinkFault =
  | ("none" | "down" | "dropReply" | "truncate" | "gibberish" | "serverError")
  /** The whole answer, a byte at a time. */
  | "dribble";

/**
 * Stands in for the origin's end of the frame link, rules of FORMAT.md included: HELLO per boot, FSNs without gaps, replays
 * acknowledged and not applied. It takes the place of the global fetch, and keeps what it applied in order.
 */
export class LinkOrigin {
  journalId = "journal-1";
  fault: LinkFault = "none";
  /** POSTs wait here before they are looked at. */
  gate: Promise<void> = Promise.resolve();
  /** Frames whose first stream is this one are refused for themselves. */
  poison: { readonly stream: string; readonly code: ErrorCode } | null = null;
  /** Bodies that hold a frame whose first stream is this one are refused as a whole, as unreadable. */
  unreadable: string | null = null;
  /** ACKs said after the right one. */
  extraAcks: (ack: SaidAck) => readonly SaidAck[] = () => [];
  posts = 0;
  inFlight = 0;
  inFlightMax = 0;
  readonly hellos: Hello[] = [];
  /** Frames per POST. */
  readonly postFrames: number[] = [];
  readonly postBytes: number[] = [];
  readonly authorizations: (string | null)[] = [];
  readonly applied: Frame[] = [];
  replays = 0;
  readonly #epochs = new Map<string, KnownEpoch>();

  install(): void {
    globalThis.fetch = (input, init) => this.#fetch(new Request(input, init as RequestInit));
  }

  /** An origin with an empty disk. */
  loseHistory(): void {
    this.journalId = `journal-${Number(this.journalId.slice(8)) + 1}`;
    this.#epochs.clear();
  }

  /** The records applied, as text, in order. */
  records(stream: string): string[] {
    return this.applied
      .flatMap(({ requests }) => requests)
      .filter((request) => request.stream === stream)
      .flatMap(({ records }) => records.map((record) => new TextDecoder().decode(record)));
  }

  async #fetch(request: Request): Promise<Response> {
    this.posts += 1;
    this.inFlight += 1;
    this.inFlightMax = Math.max(this.inFlightMax, this.inFlight);
    try {
      await this.gate;
      return await this.#answer(request);
    } finally {
      this.inFlight -= 1;
    }
  }

  async #answer(request: Request): Promise<Response> {
    if (this.fault === "down") {
      throw new Error("Network connection lost.");
    }
    this.authorizations.push(request.headers.get("authorization"));
    const body = new Uint8Array(await request.arrayBuffer());
    const messages = decodeMessages(body);
    this.postBytes.push(body.length);
    this.postFrames.push(messages.filter(({ type }) => type === "frame").length);
    if (messages.some((message) => this.#isUnreadable(message))) {
      return new Response(JSON.stringify({ code: "bad_frame", detail: "damaged" }), {
        status: catalogue.bad_frame.status,
      });
    }
    const reply = this.#take(messages);
    switch (this.fault) {
      case "none":
        return new Response(reply);
      case "dropReply":
        throw new Error("Network connection lost.");
      case "dribble":
        return new Response(dribbled(reply));
      case "truncate":
        return new Response(reply.slice(0, reply.length - 3));
      case "gibberish":
        return new Response("<html>hello</html>");
      case "serverError":
        return new Response("no", { status: 502, headers: { "retry-after": "1" } });
    }
  }

  #isUnreadable(message: LinkMessage): boolean {
    return (
      this.unreadable !== null &&
      message.type === "frame" &&
      message.frame.requests[0]?.stream === this.unreadable
    );
  }

  #take(messages: readonly LinkMessage[]): Uint8Array<ArrayBuffer> {
    const out: LinkMessage[] = [];
    let last: { buffer: string; epoch: string } | null = null;
    for (const message of messages) {
      if (message.type === "hello") {
        const { hello } = message;
        last = hello;
        this.hellos.push(hello);
        const known = this.#known(hello);
        out.push({
          type: "welcome",
          welcome: {
            journalId: this.journalId,
            buffer: hello.buffer,
            durableFsn: known.durable,
            latestBoot: known.frameBoot,
          },
        });
        known.helloBoot = Math.max(known.helloBoot, hello.boot);
      } else if (message.type === "frame") {
        last = message.frame;
        const nack = this.#apply(message.frame);
        if (nack !== null) {
          out.push(nack);
          break;
        }
      }
    }
    if (last !== null) {
      const { durable } = this.#known(last);
      const { buffer, epoch } = last;
      const right = { buffer, epoch, durable };
      for (const said of [right, ...this.extraAcks(right)]) {
        out.push({ type: "ack", ack: { ...said, received: said.durable, replicated: 0 } });
      }
    }
    return joined(out.map(encodeMessage));
  }

  #apply(frame: Frame): LinkMessage | null {
    const known = this.#known(frame);
    const expected = known.durable + 1;
    const isPoison = frame.requests[0]?.stream === this.poison?.stream;
    if (this.poison !== null && isPoison) {
      return nackOf(frame, this.poison.code, expected);
    }
    if (frame.boot > known.helloBoot || (frame.fsn < expected && frame.boot > known.frameBoot)) {
      return nackOf(frame, "hello_required", expected);
    }
    if (frame.fsn < expected) {
      this.replays += 1;
      return null;
    }
    if (frame.fsn > expected) {
      return nackOf(frame, "frame_gap", expected);
    }
    known.durable = frame.fsn;
    known.frameBoot = Math.max(known.frameBoot, frame.boot);
    this.applied.push(frame);
    return null;
  }

  #known({ buffer, epoch }: { buffer: string; epoch: string }): KnownEpoch {
    const key = `${buffer}.${epoch}`;
    const known = this.#epochs.get(key) ?? { durable: 0, helloBoot: 0, frameBoot: 0 };
    this.#epochs.set(key, known);
    return known;
  }
}

export const isVoid = (frame: Frame): boolean => (frame.flags & frameFlag.void) !== 0;

function nackOf({ buffer, epoch, fsn }: Frame, code: ErrorCode, expectedFsn: number): LinkMessage {
  const retryable = catalogue[code].retryable || code === "frame_gap";
  return {
    type: "nack",
    nack: { buffer, epoch, fsn, code, retryable, expectedFsn, message: `refused: ${code}` },
  };
}

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function dribbled(reply: Uint8Array): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at === reply.length) {
        controller.close();
      } else {
        controller.enqueue(reply.slice(at, ++at));
      }
    },
  });
}
