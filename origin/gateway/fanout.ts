import { SseChunk, type SseFormat } from "./sseEncoding.ts";
import type { Follower, Streams } from "../stream/mod.ts";

/** A reader at the tail of a stream. */
export interface TailReader {
  /** New records, or the end. Called once per advance with the same chunk for every reader. */
  onChunk(chunk: SseChunk): void;
  /** The stream is gone (deleted, expired, made anew). */
  onGone(): void;
}

/** One read of the live path; a reader further behind catches up by itself. */
const pieceBytesMax = 256 * 1024;

/** The readers at one stream's tail. It follows the stream as one, so that an advance is read and encoded once. */
class Channel implements Follower {
  readonly readers = new Set<TailReader>();
  readonly #streams: Streams;
  readonly #path: string;
  readonly #streamId: number;
  readonly #format: SseFormat;
  #offset: string;
  #loading = false;

  constructor(streams: Streams, at: TailPlace) {
    this.#streams = streams;
    this.#path = at.path;
    this.#streamId = at.streamId;
    this.#format = at.format;
    this.#offset = at.offset;
  }

  onAdvance(): void {
    while (!this.#loading && this.readers.size > 0) {
      const options = { maxBytes: pieceBytesMax, touch: true, id: this.#streamId };
      const batch = this.#streams.read(this.#path, this.#offset, options);
      if ("status" in batch) {
        this.#each((reader) => reader.onGone());
        return;
      }
      if ("loading" in batch) {
        this.#goOnAfter(batch.loading);
        return;
      }
      if (batch.records.length === 0 && !batch.closed) {
        return;
      }
      this.#offset = batch.next;
      const chunk = new SseChunk(batch, this.#format);
      this.#each((reader) => reader.onChunk(chunk));
      if (batch.upToDate) {
        return;
      }
    }
  }

  /** A tail that is on disk already. If it cannot be read the readers are let go, to come again. */
  #goOnAfter(loading: Promise<void>): void {
    this.#loading = true;
    loading.then(
      () => {
        this.#loading = false;
        this.onAdvance();
      },
      () => {
        this.#loading = false;
        this.#each((reader) => reader.onGone());
      },
    );
  }

  /** Readers leave while they are told: a copy is walked. */
  #each(tell: (reader: TailReader) => void): void {
    for (const reader of [...this.readers]) {
      tell(reader);
    }
  }
}

/** Live fan-out: all readers at the tail of one stream share each chunk (DESIGN, Reads). */
export class Fanout {
  readonly #channels = new Map<string, Channel>();
  readonly #streams: Streams;

  constructor(streams: Streams) {
    this.#streams = streams;
  }

  join(reader: TailReader, at: TailPlace): void {
    const key = channelKey(at);
    let channel = this.#channels.get(key);
    if (channel === undefined) {
      channel = new Channel(this.#streams, at);
      this.#channels.set(key, channel);
      this.#streams.follow(at.path, channel);
    }
    channel.readers.add(reader);
  }

  leave(reader: TailReader, at: TailPlace): void {
    const key = channelKey(at);
    const channel = this.#channels.get(key);
    if (channel?.readers.delete(reader) === true && channel.readers.size === 0) {
      this.#channels.delete(key);
      this.#streams.unfollow(at.path, channel);
    }
  }
}

/** Where a reader stands: at the durable tail of one life of a stream. */
export interface TailPlace {
  readonly path: string;
  readonly streamId: number;
  readonly format: SseFormat;
  readonly offset: string;
}

const channelKey = (at: TailPlace): string => `${at.streamId}:${at.path}`;
