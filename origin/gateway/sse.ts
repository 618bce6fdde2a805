import { isTextual, mediaType, responseCursor } from "../../shared/protocol/mod.ts";
import type { Timer } from "../../shared/ports/mod.ts";
import { endOfTurn } from "../ports/mod.ts";
import type { ReadBatch, StreamMeta } from "../stream/mod.ts";
import type { Lingering } from "./context.ts";
import type { Exchange } from "./exchange.ts";
import type { TailPlace, TailReader } from "./fanout.ts";
import type { ReadQuery } from "./readQuery.ts";
import { SseChunk, sseHeaders, type SseFormat } from "./sseEncoding.ts";

/** One read while catching up: small, so that one reader's history does not hold up everybody else. */
const pieceBytesMax = 256 * 1024;

/** How long the client may take to read the last bytes. */
const farewellMs = 5000;

/** What an SSE answer starts from. */
export interface SseStart {
  readonly path: string;
  readonly meta: StreamMeta;
  readonly query: ReadQuery;
  /** The first read, already made so that an error can still be an HTTP status. */
  readonly batch: ReadBatch;
}

/**
 * One SSE answer (Durable Streams §5.8). It is in one of two states: *catching up*, reading from its own offset as
 * fast as the client takes it, or *at the tail*, a reader of the stream's channel. A client that does not read is
 * moved from the tail to catching up when its backlog is full, so it costs bounded memory.
 */
export class SseResponse implements TailReader, Lingering {
  readonly #exchange: Exchange;
  readonly #path: string;
  readonly #streamId: number;
  readonly #first: SseChunk;
  readonly #format: SseFormat;
  #offset: string;
  #cursor: string;
  #place: TailPlace | null = null;
  #deadline: Timer | null = null;
  #over = false;
  #loading = false;

  constructor(exchange: Exchange, start: SseStart) {
    const { clock, random } = exchange.context;
    this.#exchange = exchange;
    this.#path = start.path;
    this.#streamId = start.meta.id;
    this.#format = { json: start.meta.json, base64: !isTextual(mediaType(start.meta.contentType)) };
    this.#first = new SseChunk(start.batch, this.#format);
    this.#offset = start.batch.start;
    this.#cursor = responseCursor(start.query.cursor, clock.now(), random.next());
  }

  /** @throws ForebayError `too_many_waiting` */
  begin(): void {
    const { context } = this.#exchange;
    const { response } = this.#exchange.channel;
    if (response.destroyed) {
      return;
    }
    this.#exchange.enter();
    context.lingering.add(this);
    context.counters.answered("sse", 200);
    // Without a length and without chunks the body ends with the connection: what is written is what is sent.
    response.removeHeader("transfer-encoding");
    const headers = [...sseHeaders(this.#format), "connection", "close"];
    response.writeHead(200, this.#exchange.headersWith(headers));
    response.on("close", () => {
      this.#end();
      this.#deadline?.cancel();
    });
    response.on("drain", () => this.#catchUpLater());
    this.#deadline = context.clock.after(context.settings.sseLifetimeMs, () => this.shutDown());
    this.#write(this.#first);
    // It was read before the gate: the tail may have moved since, or the stream have ended.
    this.#catchUp();
  }

  onChunk(chunk: SseChunk): void {
    const { context } = this.#exchange;
    const { response } = this.#exchange.channel;
    const waiting = response.writableLength;
    const bytes = chunk.bytesFor(this.#cursorNow());
    if (
      chunk.start !== this.#offset ||
      (waiting > 0 && waiting + bytes.length > context.settings.sseBacklogBytesMax)
    ) {
      context.counters.sseLagged++;
      this.#leaveTail();
      if (!response.writableNeedDrain) {
        this.#catchUpLater();
      }
      return;
    }
    this.#write(chunk);
  }

  onGone(): void {
    this.shutDown();
  }

  shutDown(): void {
    if (this.#over) {
      return;
    }
    const { context } = this.#exchange;
    const { response } = this.#exchange.channel;
    this.#end();
    this.#deadline?.cancel();
    response.end();
    // A client that does not read would keep the connection until it does.
    this.#deadline = context.clock.after(farewellMs, () => response.destroy());
  }

  #write(chunk: SseChunk): void {
    this.#offset = chunk.next;
    const bytes = chunk.bytesFor(this.#cursorNow());
    this.#exchange.context.counters.readBytesOut += bytes.length;
    this.#exchange.channel.response.write(bytes);
    if (chunk.closed) {
      this.shutDown();
    }
  }

  /** Never behind the clock's interval, never behind what this client had before. */
  #cursorNow(): string {
    const current = responseCursor(null, this.#exchange.context.clock.now(), 0);
    if (Number(current) > Number(this.#cursor)) {
      this.#cursor = current;
    }
    return this.#cursor;
  }

  #catchUpLater(): void {
    if (!this.#over && this.#place === null) {
      endOfTurn(() => this.#catchUp());
    }
  }

  #catchUp(): void {
    const busy = this.#loading || this.#exchange.channel.response.writableNeedDrain;
    if (this.#over || this.#place !== null || busy) {
      return;
    }
    const { streams } = this.#exchange.context;
    const options = { maxBytes: pieceBytesMax, touch: true, id: this.#streamId };
    const batch = streams.read(this.#path, this.#offset, options);
    if ("status" in batch) {
      this.onGone();
      return;
    }
    if ("loading" in batch) {
      this.#goOnAfter(batch.loading);
      return;
    }
    if (batch.records.length === 0 && !batch.closed) {
      this.#joinTail();
      return;
    }
    this.#deliver(new SseChunk(batch, this.#format));
  }

  /** What comes next is on disk. If it cannot be read the answer ends; the client comes back with its offset. */
  #goOnAfter(loading: Promise<void>): void {
    this.#loading = true;
    loading.then(
      () => {
        this.#loading = false;
        this.#catchUp();
      },
      () => this.onGone(),
    );
  }

  #deliver(chunk: SseChunk): void {
    this.#write(chunk);
    if (this.#over) {
      return;
    }
    if (chunk.upToDate) {
      this.#joinTail();
    } else if (!this.#exchange.channel.response.writableNeedDrain) {
      this.#catchUpLater();
    }
  }

  /** In the turn of a read that came to the tail, so that nothing lies between the two. */
  #joinTail(): void {
    const { context } = this.#exchange;
    this.#place = {
      path: this.#path,
      streamId: this.#streamId,
      format: this.#format,
      offset: this.#offset,
    };
    context.fanout.join(this, this.#place);
  }

  #leaveTail(): void {
    const { context } = this.#exchange;
    if (this.#place !== null) {
      context.fanout.leave(this, this.#place);
      this.#place = null;
    }
  }

  #end(): void {
    if (this.#over) {
      return;
    }
    this.#over = true;
    this.#leaveTail();
    this.#exchange.context.lingering.delete(this);
    this.#exchange.leave();
  }
}
