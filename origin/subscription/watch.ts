import { ForebayError } from "../../shared/errors/mod.ts";
import type { Lsn } from "../../shared/ids/mod.ts";
import type { StreamLife, Streams } from "../stream/mod.ts";
import type { Deadlines } from "./deadlines.ts";
import type { LinkKeeper } from "./links.ts";
import type { Op } from "./ops.ts";
import { isPending } from "./pending.ts";
import type { SubscriptionState } from "./state.ts";
import type { SubscriptionLog } from "./types.ts";
import type { Wakes } from "./wakes.ts";

export interface WatchOptions {
  readonly streams: Streams;
  readonly state: SubscriptionState;
  readonly links: LinkKeeper;
  readonly wakes: Wakes;
  readonly deadlines: Deadlines;
  readonly log: SubscriptionLog;
  /** Writes and applies. @throws ForebayError of the journal */
  readonly commit: (ops: readonly Op[]) => Lsn;
}

/** So many ops make one entry. */
const entryOpsMax = 1000;
const retryMs = 1000;

/** Sees what becomes of the streams: follows new ones, forgets ended ones, has wakes opened for what is pending. */
export class Watch {
  readonly #options: WatchOptions;
  #started = false;
  /** Paths to look at when the durable advance is over; true for those of new streams. */
  #news: Map<string, boolean> = new Map();

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /** One durable change of a stream. Costs two look-ups; nothing while there are no subscriptions. */
  note(path: string, created: boolean): void {
    const { state } = this.#options;
    if (this.#started && state.byId.size > 0 && (created || state.followers.has(path))) {
      this.#news.set(path, created || this.#news.get(path) === true);
    }
  }

  /** After replay: takes up the wakes that were open, and looks at what nobody was there to see. */
  start(): void {
    this.#started = true;
    const { state, streams, wakes } = this.#options;
    for (const subscription of state.byId.values()) {
      const { wake, links } = subscription;
      for (const path of links.keys()) {
        this.note(path, false);
      }
      if (wake !== null && wake.holder === null) {
        wakes.deliver(subscription);
      } else if (wake !== null) {
        wakes.lease(subscription);
      }
    }
    for (const { path } of streams.lives()) {
      this.note(path, true);
    }
    this.lookAround();
  }

  stop(): void {
    this.#started = false;
    this.#news.clear();
  }

  lookAround(): void {
    if (this.#news.size === 0) {
      return;
    }
    const news = this.#news;
    this.#news = new Map();
    try {
      this.#relink(news);
    } catch (error) {
      if (!(error instanceof ForebayError)) {
        throw error;
      }
      this.#later(news, error.message);
      return;
    }
    for (const path of news.keys()) {
      this.#wakeFollowers(path);
    }
  }

  /** The journal takes nothing at present. Nothing is lost: the same is looked at again, with what came meanwhile. */
  #later(news: ReadonlyMap<string, boolean>, reason: string): void {
    for (const [path, created] of news) {
      this.note(path, created);
    }
    this.#options.log.warn({ reason }, "new streams wait to be followed");
    this.#options.deadlines.set(this, retryMs, () => this.lookAround());
  }

  #relink(news: ReadonlyMap<string, boolean>): void {
    const { links, streams, commit } = this.#options;
    const ops: Op[] = [];
    for (const [path, created] of news) {
      ops.push(...links.opsFor(path));
      const life: StreamLife | undefined = created ? streams.life(path) : undefined;
      if (life !== undefined) {
        ops.push(...links.opsForNew(life, ops.length));
      }
    }
    for (let at = 0; at < ops.length; at += entryOpsMax) {
      commit(ops.slice(at, at + entryOpsMax));
    }
  }

  #wakeFollowers(path: string): void {
    const { state, streams, wakes } = this.#options;
    for (const subscription of [...(state.followers.get(path) ?? [])]) {
      const link = subscription.links.get(path);
      if (subscription.wake === null && link !== undefined && isPending(streams, link)) {
        wakes.consider(subscription);
      }
    }
  }
}
