import { ForebayError } from "../../shared/errors/mod.ts";
import {
  decodeMessages,
  encodeMessage,
  frameFlag,
  type Ack,
  type Frame,
  type LinkMessage,
  type RequestResult,
} from "../../shared/frame/mod.ts";
import { lsn, type Lsn } from "../../shared/ids/mod.ts";
import { limits } from "../../shared/limits.ts";
import { framesContentType } from "../../shared/protocol/mod.ts";
import type { BodySink, Channel } from "../front/mod.ts";
import type { GateWaiter, Streams } from "../stream/mod.ts";
import type { Counters, Route } from "./counters.ts";
import { Exchange } from "./exchange.ts";
import { outcomeUnknown } from "./reply.ts";

/** A push of `pushBytesMax`, or a direct frame of one request of `bodyBytesMax`; headers of frames on top. */
const framesBytesMax = Math.max(limits.pushBytesMax, limits.bodyBytesMax) + 1024 * 1024;

/** `POST /v1/frames` (shared/frame/FORMAT.md). One answer for all messages, when the newest of them is durable. */
export class Frames extends Exchange<Channel> implements BodySink, GateWaiter {
  override route: Route = "frames";
  #answer: Uint8Array<ArrayBuffer> | null = null;

  /** @throws ForebayError for whatever can be refused before the body */
  begin(): void {
    this.checkShape();
    this.checkWriter();
    const type = this.head.get("content-type");
    if (type?.toLowerCase() !== framesContentType) {
      const message = `Content-Type is ${JSON.stringify(type?.slice(0, 64) ?? null)}, frames come as ${framesContentType}`;
      throw new ForebayError("unsupported_media_type", message);
    }
    this.enter();
    try {
      this.takeBody(framesBytesMax, this);
    } catch (error) {
      this.leave();
      throw error;
    }
  }

  onBody(body: Uint8Array): void {
    const { streams, counters } = this.context;
    counters.bodyBytesIn += body.byteLength;
    const push = new Push(streams, counters);
    try {
      for (const message of decodeMessages(body)) {
        if (!push.take(message)) {
          break;
        }
      }
    } catch (error) {
      // The body is no sequence of messages, or a HELLO could not be written: the POST is refused as a whole.
      this.leave();
      this.refuse(operating(error));
      return;
    }
    this.#answer = push.answer();
    streams.hold(push.newest, this);
  }

  onBodyRefused(error: ForebayError): void {
    this.leave();
    this.refuse(error);
  }

  onBodyAborted(): void {
    this.leave();
  }

  release(): void {
    this.leave();
    const headers = ["content-type", framesContentType, "cache-control", "no-store"];
    this.send({ status: 200, headers, body: this.#answer });
  }

  fail(error: Error): void {
    this.leave();
    this.refuse(outcomeUnknown(error));
  }
}

/** The messages of one POST, applied in order, and what is said to them. */
class Push {
  readonly #streams: Streams;
  readonly #counters: Counters;
  readonly #out: LinkMessage[] = [];
  /** The last frame applied of each outbox: acknowledgements are cumulative. */
  readonly #acks = new Map<string, Ack>();
  /** Newest entry that any part of the answer was judged by. */
  newest: Lsn = lsn(0);

  constructor(streams: Streams, counters: Counters) {
    this.#streams = streams;
    this.#counters = counters;
  }

  /** @returns whether the next message may be looked at */
  take(message: LinkMessage): boolean {
    switch (message.type) {
      case "hello": {
        const { welcome, lsn: at } = this.#streams.hello(message.hello);
        this.#judgedBy(at);
        this.#out.push({ type: "welcome", welcome });
        return true;
      }
      case "frame":
        this.#counters.framesReceived++;
        return (message.frame.flags & frameFlag.direct) === 0
          ? this.#takeOutboxFrame(message.frame)
          : this.#takeDirectFrame(message.frame);
      case "welcome":
      case "ack":
      case "nack":
      case "results":
      case "credit":
        // An origin's own words, sent to an origin: nothing to do, and no reason to stop.
        return true;
    }
  }

  answer(): Uint8Array<ArrayBuffer> {
    for (const ack of this.#acks.values()) {
      this.#out.push({ type: "ack", ack });
    }
    const parts = this.#out.map(encodeMessage);
    return new Uint8Array(Buffer.concat(parts));
  }

  #takeDirectFrame(frame: Frame): boolean {
    try {
      const { results, lsn: at } = this.#streams.applyDirect(frame);
      this.#judgedBy(at);
      this.#out.push({ type: "results", results });
    } catch (error) {
      const result = refusedResult(operating(error));
      this.#out.push({ type: "results", results: frame.requests.map(() => result) });
    }
    return true;
  }

  #takeOutboxFrame(frame: Frame): boolean {
    const { buffer, epoch, fsn } = frame;
    try {
      const outcome = this.#streams.applyFrame(frame);
      if (outcome.kind !== "refused") {
        this.#judgedBy(outcome.lsn);
        const reached = Math.max(outcome.fsn, this.#acks.get(buffer)?.durable ?? 0);
        this.#acks.set(buffer, {
          buffer,
          epoch,
          received: reached,
          durable: reached,
          replicated: 0,
        });
        return true;
      }
      const { code, retryable, expectedFsn, message } = outcome;
      this.#nack({ buffer, epoch, fsn, code, retryable, expectedFsn, message });
    } catch (error) {
      // The journal took nothing of this frame: it is the one to come again.
      const { code, retryable, message } = operating(error);
      this.#nack({ buffer, epoch, fsn, code, retryable, expectedFsn: fsn, message });
    }
    return false;
  }

  #nack(nack: Extract<LinkMessage, { type: "nack" }>["nack"]): void {
    this.#counters.framesRefused++;
    this.#out.push({ type: "nack", nack });
  }

  #judgedBy(at: Lsn): void {
    if (at > this.newest) {
      this.newest = at;
    }
  }
}

function refusedResult(error: ForebayError): RequestResult {
  const headers: Record<string, string> = { ...error.headers };
  if (error.retryAfterSeconds !== undefined) {
    headers["retry-after"] = String(error.retryAfterSeconds);
  }
  return { status: error.status, code: error.code, detail: error.message, headers };
}

/** Programmer errors go on and end the process. */
function operating(error: unknown): ForebayError {
  if (error instanceof ForebayError) {
    return error;
  }
  throw error;
}
