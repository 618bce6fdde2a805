import { ForebayError, invariant } from "../../shared/errors/mod.ts";
import type { Timer } from "../../shared/ports/mod.ts";
import { opKind } from "./entry.ts";
import type { Shard } from "./shard.ts";
import type { StreamState } from "./state.ts";
import type { Follower } from "./types.ts";

/** The longest a timer takes: 2^31 - 1 ms. */
const timerMsMax = 2 ** 31 - 1;

/**
 * Who waits for news of which stream, and the shard's one deadline timer. A stream that nobody follows may stay past
 * its deadline until someone asks for it; followers must be told, so the timer is armed for the earliest deadline
 * among the followed streams, and only while there is one.
 */
export class Followers {
  readonly #shard: Shard;
  readonly #following: Map<Follower, StreamState> = new Map();
  /** Followed streams that have a deadline. */
  readonly #mortal: Set<StreamState> = new Set();
  #timer: Timer | null = null;
  #dueAt = Number.POSITIVE_INFINITY;

  constructor(shard: Shard) {
    this.#shard = shard;
  }

  get size(): number {
    return this.#following.size;
  }

  /**
   * A follower follows one stream. It stays with that life of the path, which it has read in this same turn: whatever
   * came between a read and following, an end too, nobody would tell it of.
   */
  follow(path: string, follower: Follower): void {
    const stream = this.#shard.state.byPath.get(path);
    invariant(stream !== undefined, "who follows a stream has just read it");
    this.unfollow(follower);
    this.#following.set(follower, stream);
    stream.followers ??= new Set();
    stream.followers.add(follower);
    if (stream.deadline < Number.POSITIVE_INFINITY) {
      this.#mortal.add(stream);
      this.#arm(stream.deadline);
    }
  }

  unfollow(follower: Follower): void {
    const stream = this.#following.get(follower);
    if (stream === undefined) {
      return;
    }
    this.#following.delete(follower);
    stream.followers?.delete(follower);
    if (stream.followers?.size === 0) {
      stream.followers = null;
      this.#mortal.delete(stream);
      if (this.#mortal.size === 0) {
        this.#disarm();
      }
    }
  }

  /** Calls the followers that each of `streams` has now; those that come meanwhile are not called. */
  tell(streams: readonly StreamState[]): void {
    for (const stream of streams) {
      for (const follower of [...(stream.followers ?? [])]) {
        if (this.#following.get(follower) === stream) {
          follower.onAdvance();
        }
      }
    }
  }

  close(): void {
    this.#mortal.clear();
    this.#disarm();
  }

  #arm(deadline: number): void {
    if (deadline >= this.#dueAt) {
      return;
    }
    this.#disarm();
    this.#dueAt = deadline;
    const wait = Math.min(Math.max(0, deadline - this.#shard.clock.now()), timerMsMax);
    this.#timer = this.#shard.clock.after(wait, () => this.#fire());
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#dueAt = Number.POSITIVE_INFINITY;
  }

  #fire(): void {
    this.#disarm();
    const now = this.#shard.clock.now();
    let next = Number.POSITIVE_INFINITY;
    for (const stream of this.#mortal) {
      if (stream.ended) {
        this.#mortal.delete(stream);
      } else if (stream.deadline > now) {
        next = Math.min(next, stream.deadline);
      } else {
        this.#mortal.delete(stream);
        this.#expire(stream, now);
      }
    }
    if (next < Number.POSITIVE_INFINITY) {
      this.#arm(next);
    }
  }

  /** The followers are told when the end is durable. A journal that takes nothing leaves it to the next request. */
  #expire(stream: StreamState, now: number): void {
    try {
      this.#shard.end(stream, opKind.expire, now);
    } catch (error) {
      if (!(error instanceof ForebayError)) {
        throw error;
      }
    }
  }
}
