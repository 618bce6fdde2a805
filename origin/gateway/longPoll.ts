import { ForebayError } from "../../shared/errors/mod.ts";
import type { Timer } from "../../shared/ports/mod.ts";
import type { Follower, ReadBatch, Verdict } from "../stream/mod.ts";
import type { Lingering } from "./context.ts";
import type { Exchange } from "./exchange.ts";

/** A reader waiting at the tail for the next records, the end of the stream or its deadline. */
export class LongPoll implements Follower, Lingering {
  readonly #exchange: Exchange;
  readonly #path: string;
  /** The empty read it waits at; the answer when nothing comes. */
  readonly #empty: ReadBatch;
  #timer: Timer | null = null;
  #resolve: ((outcome: ReadBatch | Verdict) => void) | null = null;
  #reject: ((error: unknown) => void) | null = null;

  constructor(exchange: Exchange, path: string, empty: ReadBatch) {
    this.#exchange = exchange;
    this.#path = path;
    this.#empty = empty;
  }

  /**
   * The records that came, an empty batch at the deadline or the end, or a refusal when the stream went away.
   *
   * @throws ForebayError `too_many_waiting` | `shutting_down`
   */
  answer(): Promise<ReadBatch | Verdict> {
    this.#exchange.enter();
    const { context } = this.#exchange;
    const { response } = this.#exchange.channel;
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      context.lingering.add(this);
      this.#timer = context.clock.after(context.settings.longPollMs, () =>
        this.#finish(this.#empty),
      );
      // Nobody is left to read the answer; any will do.
      response.once("close", () => this.#finish(this.#empty));
      // The empty read is of an earlier turn: what came since is not news any more.
      this.onAdvance();
      if (this.#resolve !== null) {
        context.streams.follow(this.#path, this);
      }
    });
  }

  onAdvance(): void {
    if (this.#resolve === null) {
      return;
    }
    const { context } = this.#exchange;
    const { id, next } = this.#empty;
    const options = { maxBytes: context.settings.readBytesMax, touch: true, id };
    const outcome = context.streams.read(this.#path, next, options);
    if ("loading" in outcome) {
      outcome.loading.then(
        () => this.onAdvance(),
        (error: unknown) => this.#fail(error),
      );
    } else if ("status" in outcome || outcome.records.length > 0 || outcome.closed) {
      this.#finish(outcome);
    }
  }

  shutDown(): void {
    this.#fail(new ForebayError("shutting_down", "this server is shutting down; try again"));
  }

  #finish(outcome: ReadBatch | Verdict): void {
    const resolve = this.#resolve;
    if (this.#end()) {
      resolve?.(outcome);
    }
  }

  #fail(error: unknown): void {
    const reject = this.#reject;
    if (this.#end()) {
      reject?.(error);
    }
  }

  /** @returns false when it was over before */
  #end(): boolean {
    if (this.#resolve === null) {
      return false;
    }
    this.#resolve = null;
    this.#reject = null;
    const { context } = this.#exchange;
    this.#timer?.cancel();
    context.lingering.delete(this);
    context.streams.unfollow(this.#path, this);
    this.#exchange.leave();
    return true;
  }
}
