import { ForebayError, invariant } from "../../shared/errors/mod.ts";
import {
  header,
  normalizeStreamPath,
  parseAck,
  parseStreamSeq,
  streamPrefix,
  type AckLevel,
} from "../../shared/protocol/mod.ts";
import type { BodySink, Channel } from "../front/mod.ts";
import type { GateWaiter, Verdict } from "../stream/mod.ts";
import type { Route } from "./counters.ts";
import { Exchange } from "./exchange.ts";
import { producerOf } from "./producer.ts";
import { outcomeUnknown, verdictReply } from "./reply.ts";

/**
 * `POST /v1/stream/<path>`: the hot path. One object from the first byte to the answer: it takes the body,
 * waits at the gate and writes the answer, without a promise or a closure.
 */
export class Append extends Exchange<Channel> implements BodySink, GateWaiter {
  override route: Route = "append";
  #path = "";
  #ack: AckLevel = "origin";
  #verdict: Verdict | null = null;

  /** @throws ForebayError for whatever can be refused before the body */
  begin(): void {
    this.checkShape();
    this.#path = normalizeStreamPath(this.target.path.slice(streamPrefix.length));
    this.checkWriter();
    this.#ack = parseAck(this.target.one("ack"), this.head.get(header.ack), "origin");
    this.enter();
    try {
      this.takeBody(this.context.settings.bodyBytesMax, this);
    } catch (error) {
      this.leave();
      throw error;
    }
  }

  onBody(body: Uint8Array): void {
    const { context } = this;
    context.counters.bodyBytesIn += body.byteLength;
    if (this.#ack === "none") {
      this.#appendUnacknowledged(body);
      return;
    }
    try {
      this.#verdict = this.#append(body);
    } catch (error) {
      this.leave();
      if (!(error instanceof ForebayError)) {
        throw error;
      }
      this.refuse(error);
      return;
    }
    context.streams.hold(this.#verdict.lsn, this);
  }

  onBodyRefused(error: ForebayError): void {
    this.leave();
    this.refuse(error);
  }

  onBodyAborted(): void {
    this.leave();
  }

  release(): void {
    invariant(this.#verdict !== null, "only a judged append waits at the gate");
    this.leave();
    this.send(verdictReply(this.#verdict, this.context.durableAck));
  }

  fail(error: Error): void {
    this.leave();
    this.refuse(outcomeUnknown(error));
  }

  #append(body: Uint8Array): Verdict {
    const { head } = this;
    const close = isTrue(head.get(header.closed));
    const contentType = head.get("content-type");
    if (body.byteLength === 0 && !close) {
      throw new ForebayError("empty_body", "an append needs a body, or Stream-Closed: true");
    }
    if (body.byteLength > 0 && contentType === null) {
      throw new ForebayError("missing_content_type", "an append with a body needs a Content-Type");
    }
    return this.context.streams.append({
      path: this.#path,
      contentType,
      body,
      producer: producerOf(head, null),
      streamSeq: parseStreamSeq(head.exact(header.seq)),
      expectedOffset: head.get(header.expectedOffset),
      close,
    });
  }

  /** `ack=none`: answered before anything is decided; what becomes of it is only counted. */
  #appendUnacknowledged(body: Uint8Array): void {
    const { counters } = this.context;
    this.leave();
    counters.unacknowledged++;
    this.send({ status: 202, headers: [header.ack, "none"], body: null });
    try {
      if (this.#append(body).code !== null) {
        counters.unacknowledgedRefused++;
      }
    } catch (error) {
      if (!(error instanceof ForebayError)) {
        throw error;
      }
      counters.unacknowledgedRefused++;
    }
  }
}

/** `Stream-Closed` closes only when it says true, in any case (Durable Streams §5.1). */
export function isTrue(value: string | null): boolean {
  return value !== null && value.toLowerCase() === "true";
}
