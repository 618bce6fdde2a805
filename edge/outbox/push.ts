import { decodeMessages, encodeMessage, type LinkMessage } from "../../shared/frame/mod.ts";
import type { Clock, Random } from "../../shared/ports/mod.ts";
import {
  type EffectOf,
  readAnswer,
  startSender,
  stepSender,
  type SenderEvent,
  type SenderState,
  type SenderStep,
} from "../../shared/sender/mod.ts";
import { joined, post, type Outcome } from "./carrier.ts";
import type { DrainRate } from "./drainRate.ts";
import { applyEffects } from "./effects.ts";
import type { FrameRow } from "./rows.ts";
import type { FramesLink } from "./settings.ts";
import { lifeOf, type Store } from "./store.ts";

/** What the push carrier works with. */
export interface PushRim {
  readonly buffer: string;
  readonly link: FramesLink;
  readonly store: Store;
  readonly rate: DrainRate;
  readonly clock: Clock;
  readonly random: Random;
  /** The object's one alarm, set or (null) gone. Takes effect with the writes of the same turn. */
  setAlarm(atMs: number | null): void;
  /** Rows up to this are acknowledged, given up or lost. */
  settled(row: number): void;
  /** Work that goes on after the call that began it. */
  goOn(work: Promise<void>): void;
}

/** The frames of a POST. */
interface Sent {
  readonly fromFsn: number;
  readonly frames: number;
}

/** After a fault of our own the alarm stands this far off. */
const faultMs = 60_000;

/**
 * The push carrier: `shared/sender` decides, this does. At most one POST is in flight, and nothing stays open when it
 * has ended.
 */
export class Push {
  readonly #rim: PushRim;
  #sender: SenderState | null = null;
  #flight: Promise<void> | null = null;
  /** One frame a POST: a POST of several was refused as a whole, so one of them may be poison. */
  #single = false;
  #sentThrough = 0;
  #framesSent = 0;
  #framesReplayed = 0;
  #fault: string | null = null;

  constructor(rim: PushRim) {
    this.#rim = rim;
  }

  get framesSent(): number {
    return this.#framesSent;
  }

  get framesReplayed(): number {
    return this.#framesReplayed;
  }

  /** What went wrong in the outbox itself, until frames leave again. */
  get fault(): string | null {
    return this.#fault;
  }

  /** Frames may have been added, or the object has woken over a backlog. The boot is taken. */
  wake(): void {
    this.#guarded(() => {
      const { book } = this.#rim.store;
      const { boot, row } = book.tail;
      const nowMs = this.#rim.clock.now();
      const highest = row - lifeOf(book).shift;
      if (this.#sender === null) {
        this.#take(
          startSender(book.drain.memory, { highest, boot, pushes: true, linked: false }, nowMs),
        );
      } else if (highest > this.#sender.highest) {
        this.#step({ type: "appended", highest, boot, nowMs });
      }
    });
  }

  /** Somebody asks not to wait for the backoff. */
  hurry(): void {
    this.#guarded(() => {
      if (this.#sender?.phase === "waiting") {
        this.#step({
          type: "alarm",
          nowMs: Math.max(this.#rim.clock.now(), this.#sender.retryAtMs),
        });
      } else {
        this.wake();
      }
    });
  }

  /** The alarm came. Resolves when nothing is in flight any more: all sent, or waiting for another alarm. */
  async alarm(): Promise<void> {
    if (this.#sender === null) {
      this.wake();
    } else {
      this.#guarded(() => this.#step({ type: "alarm", nowMs: this.#rim.clock.now() }));
    }
    while (this.#flight !== null) {
      await this.#flight;
    }
  }

  #step(event: SenderEvent): void {
    if (this.#sender !== null) {
      this.#take(stepSender(this.#sender, event));
    }
  }

  /** The step's writes first, all in one transaction, then what goes out; the platform holds that until they are safe. */
  #take({ state, effects }: SenderStep, tookMs = 0): void {
    const { store, rate, clock, buffer } = this.#rim;
    const done = applyEffects(store, buffer, { state, effects }, clock.now());
    this.#sender = state;
    if (done.trimmedBytes > 0) {
      this.#single = false;
      this.#fault = null;
      rate.trimmed(done.trimmedBytes, clock.now(), tookMs);
    }
    this.#rim.settled(done.settledRow);
    for (const effect of effects) {
      switch (effect.type) {
        case "arm":
          this.#rim.setAlarm(effect.atMs);
          break;
        case "disarm":
          this.#rim.setAlarm(null);
          break;
        case "send":
          this.#send(effect);
          break;
        case "sendOnLink":
        case "dropLink":
        case "closed":
        case "trim":
        case "giveUp":
        case "restartEpoch":
        case "report":
          break;
      }
    }
  }

  #send({ hello, fromFsn, bytesMax }: EffectOf<"send">): void {
    const messages = this.#frames(fromFsn, bytesMax);
    const sent = { fromFsn, frames: messages.length };
    const flight = this.#fly(joined(hello ? [this.#hello(), ...messages] : messages), sent);
    this.#flight = flight;
    this.#rim.goOn(flight);
  }

  async #fly(body: Uint8Array<ArrayBuffer>, sent: Sent): Promise<void> {
    const { clock, link } = this.#rim;
    const startedAt = clock.now();
    const outcome = await post(clock, link, body);
    this.#flight = null;
    this.#guarded(() => {
      if (this.#sender !== null) {
        const event = this.#eventOf(outcome, sent);
        this.#take(stepSender(this.#sender, event), clock.now() - startedAt);
      }
    });
  }

  #hello(): Uint8Array {
    const { book } = this.#rim.store;
    const { epoch, shift } = lifeOf(book);
    const { boot, row } = book.tail;
    const hello = { buffer: this.#rim.buffer, epoch, boot, highestFsn: row - shift };
    return encodeMessage({ type: "hello", hello });
  }

  /** Kept frames from `fromFsn` on, at least one, up to `bytesMax`. */
  #frames(fromFsn: number, bytesMax: number): Uint8Array[] {
    const { shift } = lifeOf(this.#rim.store.book);
    const messages: Uint8Array[] = [];
    let bytes = 0;
    for (const row of this.#rim.store.tables.framesAbove(fromFsn - 1 + shift)) {
      const message = this.#messageOf(row);
      if (messages.length > 0 && (this.#single || bytes + message.length > bytesMax)) {
        break;
      }
      messages.push(message);
      bytes += message.length;
      this.#framesReplayed += row.row <= this.#sentThrough ? 1 : 0;
      this.#sentThrough = Math.max(this.#sentThrough, row.row);
    }
    this.#framesSent += messages.length;
    return messages;
  }

  /** The stored message, under the present epoch. One that cannot be read goes as it is: the origin refuses it. */
  #messageOf(row: FrameRow): Uint8Array {
    const { epoch, shift, encodedFrom } = lifeOf(this.#rim.store.book);
    const stored = new Uint8Array(row.bytes);
    if (row.row > encodedFrom) {
      return stored;
    }
    try {
      const [message] = decodeMessages(stored);
      return message?.type === "frame"
        ? encodeMessage({ type: "frame", frame: { ...message.frame, epoch, fsn: row.row - shift } })
        : stored;
    } catch {
      return stored;
    }
  }

  #eventOf(outcome: Outcome, sent: Sent): SenderEvent {
    const nowMs = this.#rim.clock.now();
    const random = this.#rim.random.next();
    switch (outcome.kind) {
      case "answered":
        return this.#answered(outcome.messages, nowMs, random);
      case "lost":
        return { type: "lost", reason: outcome.reason, nowMs, random };
      case "refused": {
        const { status, code, reason, retryAfterMs } = outcome;
        if (code === "bad_frame" || code === "frame_too_large") {
          if (sent.frames === 1) {
            const nack = { fsn: sent.fromFsn, code, retryable: false, message: reason } as const;
            const answer = { welcome: null, durable: null, nack, credit: null };
            return { type: "answered", answer, firstNewerFsn: null, nowMs, random };
          }
          this.#single = true;
        }
        return { type: "refused", status, reason, retryAfterMs, nowMs, random };
      }
    }
  }

  #answered(messages: readonly LinkMessage[], nowMs: number, random: number): SenderEvent {
    const { store, buffer } = this.#rim;
    const { epoch, shift } = lifeOf(store.book);
    const answer = readAnswer(messages, buffer, epoch);
    const newer =
      answer.welcome === null ? undefined : store.tables.oldestAfterBoot(answer.welcome.latestBoot);
    const firstNewerFsn = newer === undefined ? null : newer - shift;
    return { type: "answered", answer, firstNewerFsn, nowMs, random };
  }

  /** Nothing of ours may stop the alarm's chain: after a fault the sender starts anew from what is stored. */
  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#fault = String(error);
      this.#sender = null;
      this.#rim.setAlarm(this.#rim.clock.now() + faultMs);
    }
  }
}
