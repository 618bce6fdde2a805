import {
  Front,
  HeaderBlock,
  HeldBytes,
  type Channel,
  type FrontSettings,
} from "../../../origin/front/mod.ts";
import type { BodySink } from "../../../origin/front/mod.ts";
import { clock as realClock } from "../../../origin/ports/mod.ts";
import type { ForebayError } from "../../../shared/errors/mod.ts";
import type { Clock } from "../../../shared/ports/mod.ts";

export const settings: FrontSettings = {
  maxConnections: 1000,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
  keepAliveTimeoutMs: 65_000,
  timeoutCheckMs: 10_000,
};

const asked = [
  "host",
  "content-type",
  "content-length",
  "transfer-encoding",
  "content-encoding",
  "authorization",
  "origin",
  "stream-seq",
  "stream-closed",
  "producer-id",
  "if-none-match",
] as const;

const shared = new HeaderBlock(["x-test", "1"]);

/** What a handler saw of one request. */
export interface Seen {
  /** `recognised` by the front itself, or read by `http`. */
  readonly by: "recognised" | "http";
  readonly method: string;
  readonly url: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly duplicate: string | null;
  /** As latin1. `aborted`: its end never came; a code: refused. */
  body: string;
  outcome: "arriving" | "whole" | "aborted" | ForebayError["code"];
}

/** Takes each request's body and answers it, at once unless held. The answer's body names the request. */
export class Handler {
  readonly seen: Seen[] = [];
  readonly held: HeldBytes;
  /** Answers to whole requests wait for `release`; refusals never wait. */
  holding = false;
  /** Refuses before the body is looked at. */
  refusing = false;
  bodyBytesMax = 1000;
  answerBody: (seen: Seen) => string = (seen) => `${seen.method} ${seen.url} ${seen.body}`;
  readonly #due: (() => void)[] = [];

  constructor(heldBytesMax = 1_000_000) {
    this.held = new HeldBytes(heldBytesMax);
  }

  get due(): number {
    return this.#due.length;
  }

  take(channel: Channel, by: Seen["by"]): void {
    const { head, method, url } = channel;
    const fields: Record<string, string> = {};
    for (const name of asked) {
      const value = head.exact(name);
      if (value !== null) {
        fields[name] = value;
      }
    }
    const { duplicate } = head;
    const seen: Seen = { by, method, url, fields, duplicate, body: "", outcome: "arriving" };
    this.seen.push(seen);
    if (this.refusing) {
      this.#answer(channel, 401, seen);
    } else {
      channel.takeBody(this.bodyBytesMax, this.held, this.#sink(channel, seen));
    }
  }

  /** Answers the oldest that waits. */
  release(): void {
    this.#due.shift()?.();
  }

  #sink(channel: Channel, seen: Seen): BodySink {
    return {
      onBody: (body) => {
        seen.body = Buffer.from(body).toString("latin1");
        seen.outcome = "whole";
        this.#answer(channel, 200, seen);
      },
      onBodyRefused: (error) => {
        seen.outcome = error.code;
        this.#answer(channel, error.status, seen);
      },
      onBodyAborted: () => {
        seen.outcome = "aborted";
      },
    };
  }

  #answer(channel: Channel, status: number, seen: Seen): void {
    const answer = (): void => {
      const body = channel.method === "HEAD" ? null : this.answerBody(seen);
      const length = body === null ? [] : ["content-length", String(Buffer.byteLength(body))];
      channel.answer(status, shared, length, body);
    };
    if (this.holding && status === 200) {
      this.#due.push(answer);
    } else {
      answer();
    }
  }
}

export interface FrontUnderTest {
  readonly front: Front;
  readonly handler: Handler;
  readonly port: number;
  /** How often the deadline of `close` cut connections. */
  readonly cuts: () => number;
  close(deadlineMs?: number): Promise<void>;
}

/** The real front on a free port, its clock and handler a test's. */
export async function startFront(
  overrides: Partial<FrontSettings> = {},
  options: { clock?: Clock; handler?: Handler } = {},
): Promise<FrontUnderTest> {
  const handler = options.handler ?? new Handler();
  let cuts = 0;
  const front = new Front({
    clock: options.clock ?? realClock,
    settings: { ...settings, ...overrides },
    onRecognised: (channel) => handler.take(channel, "recognised"),
    onRequest: (channel) => {
      handler.take(channel, "http");
      channel.drainUntaken();
    },
    onCut: () => {
      cuts++;
    },
  });
  const port = await front.listen("127.0.0.1", 0);
  const close = (deadlineMs = 1000): Promise<void> => front.close(deadlineMs);
  return { front, handler, port, cuts: () => cuts, close };
}
