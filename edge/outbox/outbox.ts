import { DurableObject } from "cloudflare:workers";
import { invariant } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import { AckWaiters } from "../../shared/sender/mod.ts";
import { clock, random } from "../ports/mod.ts";
import { ackOf, isPending, rowOf } from "./acks.ts";
import { appendRequests, booted } from "./append.ts";
import { deadFrames, deadLetter, replayDead } from "./dead.ts";
import { DrainRate } from "./drainRate.ts";
import { Push } from "./push.ts";
import { framesLink, marksOf, type OutboxEnv } from "./settings.ts";
import { statusOf } from "./status.ts";
import { framesKept, Store } from "./store.ts";
import type {
  DeadFrame,
  DeadLetter,
  OutboxAckReply,
  OutboxRefusal,
  OutboxReply,
  OutboxRequest,
  OutboxRpc,
  OutboxStatus,
} from "./types.ts";

const namePrefix = "buf:";

/**
 * The outbox of one buffer (DESIGN, Edge): takes requests into SQLite, answers when they are safe there, and pushes
 * them to the origin. It keeps nothing going when it is empty, so it hibernates.
 *
 * Every reply leaves through the platform's output gate, after the writes it speaks of.
 */
export class Outbox extends DurableObject<OutboxEnv> implements OutboxRpc {
  readonly #buffer: string;
  readonly #store: Store;
  readonly #rate = new DrainRate();
  readonly #waiters = new AckWaiters(clock);
  readonly #push: Push;
  /** This life of the object has taken its boot. */
  #booted = false;

  constructor(ctx: DurableObjectState, env: OutboxEnv) {
    super(ctx, env);
    const { name } = ctx.id;
    invariant(
      name?.startsWith(namePrefix) === true,
      `an outbox is named ${namePrefix}<region>:<n>`,
    );
    this.#buffer = name.slice(namePrefix.length);
    this.#store = new Store(ctx.storage, random);
    this.#push = new Push({
      buffer: this.#buffer,
      link: framesLink(env),
      store: this.#store,
      rate: this.#rate,
      clock,
      random,
      setAlarm: (atMs) => this.#setAlarm(atMs),
      settled: (row) => this.#waiters.advance(row),
      goOn: (work) => ctx.waitUntil(work),
    });
    this.#wakeOverBacklog();
  }

  async append(requests: readonly OutboxRequest[]): Promise<OutboxReply> {
    const marks = marksOf(this.env);
    if ("kind" in marks) {
      return { epoch: "", answers: requests.map(() => marks) };
    }
    const rim = {
      store: this.#store,
      buffer: this.#buffer,
      marks,
      rate: this.#rate,
      now: clock.now(),
      boots: !this.#booted,
    };
    const reply = appendRequests(rim, requests);
    this.#booted = true;
    this.#push.wake();
    return reply;
  }

  async ack(position: string, waitMs: number): Promise<OutboxAckReply> {
    const row = rowOf(this.#store, this.#buffer, position);
    if (typeof row !== "number") {
      return row;
    }
    const reply = ackOf(this.#store, row);
    if (waitMs <= 0 || !isPending(reply)) {
      return reply;
    }
    await this.#waiters.wait(row, Math.min(waitMs, limits.longPollMs));
    return ackOf(this.#store, row);
  }

  async status(): Promise<OutboxStatus> {
    return statusOf({
      buffer: this.#buffer,
      store: this.#store,
      push: this.#push,
      rate: this.#rate,
      now: clock.now(),
    });
  }

  async dead(after: number): Promise<readonly DeadFrame[]> {
    return deadFrames(this.#store, after);
  }

  async deadLetter(row: number): Promise<DeadLetter | OutboxRefusal> {
    return deadLetter(this.#store, row);
  }

  async replayDead(
    row: number,
  ): Promise<{ readonly kind: "replayed"; readonly fsn: number } | OutboxRefusal> {
    this.#takeBoot();
    const reply = replayDead(this.#store, this.#buffer, { row, now: clock.now() });
    this.#push.wake();
    return reply;
  }

  async drain(): Promise<void> {
    if (framesKept(this.#store.book) > 0) {
      this.#push.hurry();
    }
  }

  /** The watchdog. Never throws: the runtime would take it away after a few failures. */
  override async alarm(): Promise<void> {
    if (framesKept(this.#store.book) > 0) {
      await this.#push.alarm();
    }
  }

  /** A backlog drains without new traffic (F2), whatever woke the object, and sets the alarm anew if it was lost. */
  #wakeOverBacklog(): void {
    if (framesKept(this.#store.book) === 0) {
      return;
    }
    this.#takeBoot();
    this.#push.wake();
  }

  /** Nothing is sent under a boot that was not taken by this life of the object. */
  #takeBoot(): void {
    if (!this.#booted && this.#store.book.lives.length > 0) {
      this.#store.change((book) => ({
        book: { ...book, tail: booted(book.tail, clock.now()) },
        result: undefined,
      }));
      this.#booted = true;
    }
  }

  #setAlarm(atMs: number | null): void {
    this.ctx.waitUntil(
      atMs === null ? this.ctx.storage.deleteAlarm() : this.ctx.storage.setAlarm(atMs),
    );
  }
}
