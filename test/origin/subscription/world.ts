import { createStreams } from "../../../origin/stream/mod.ts";
import {
  AddressPolicy,
  type Answer,
  createSubscriptions,
  type Definition,
  Glob,
  type OwnedSubscriptions,
  type WakeReport,
} from "../../../origin/subscription/mod.ts";
import type { WebhookAnswer, WebhookPost } from "../../../origin/subscription/types.ts";
import { seededRandom } from "../seededRandom.ts";
import { ResidentRecords } from "../store/harness.ts";
import {
  Reply,
  resident,
  type ResidentStreams,
  TestClock,
  TestJournal,
} from "../stream/harness.ts";

/** The body of a webhook or the answer to a claim, as far as tests look at it. */
export interface WakeJson {
  readonly wake_id: string;
  readonly generation: number;
  readonly callback_token: string;
  readonly callback_url: string;
  readonly token: string;
  readonly streams: readonly {
    readonly path: string;
    readonly acked_offset: string;
    readonly tail_offset: string;
    readonly has_pending: boolean;
  }[];
}

/** A webhook under way: the test is its receiver. */
export class Posted {
  readonly post: WebhookPost;
  readonly signal: AbortSignal;
  readonly json: WakeJson;
  readonly #settle: (answer: WebhookAnswer | Error) => void;

  constructor(
    post: WebhookPost,
    signal: AbortSignal,
    settle: (answer: WebhookAnswer | Error) => void,
  ) {
    this.post = post;
    this.signal = signal;
    this.json = JSON.parse(post.body);
    this.#settle = settle;
  }

  async answer(status: number, extras: Partial<WebhookAnswer> = {}): Promise<void> {
    this.#settle({ status, done: false, retryAfterMs: null, ...extras });
    await turn();
  }

  async fail(message: string): Promise<void> {
    this.#settle(new Error(message));
    await turn();
  }
}

/** Subscriptions to streams whose records are all in memory: they never have to load. */
interface ResidentSubscriptions extends Omit<OwnedSubscriptions, "callback" | "ack"> {
  callback(id: string, report: WakeReport): Answer;
  ack(id: string, report: WakeReport): Answer;
}

/** Streams with subscriptions over a journal whose commits and a clock whose time a test moves. */
export class World {
  readonly clock: TestClock;
  readonly journal = new TestJournal();
  readonly streams: ResidentStreams;
  readonly subscriptions: ResidentSubscriptions;
  /** All webhooks sent so far, in order. */
  readonly posts: Posted[] = [];
  readonly warnings: object[] = [];

  constructor(entries: readonly Uint8Array[] = [], clock: TestClock = new TestClock()) {
    this.clock = clock;
    const streams = createStreams({ clock, store: new ResidentRecords(64 << 20) });
    this.streams = resident(streams);
    this.subscriptions = createSubscriptions({
      streams,
      clock,
      random: seededRandom(entries.length + 1),
      log: { warn: (fields) => void this.warnings.push(fields) },
      policy: new AddressPolicy(true, []),
      post: (post, signal) =>
        new Promise((resolve, reject) => {
          const settle = (answer: WebhookAnswer | Error): void =>
            answer instanceof Error ? reject(answer) : resolve(answer);
          signal.addEventListener("abort", () => reject(signal.reason as Error));
          this.posts.push(new Posted(post, signal, settle));
        }),
    }) as ResidentSubscriptions;
    for (const entry of entries) {
      this.journal.entries.push(entry);
      this.streams.replay(this.journal.reserved, entry);
    }
    this.journal.durable = this.journal.reserved;
    this.journal.owner = this.streams;
    this.streams.start(this.journal);
    this.subscriptions.start();
  }

  /** Commits until nothing is left to commit: what becomes durable may lead to more. */
  async commit(): Promise<void> {
    while (this.journal.durable < this.journal.reserved) {
      this.journal.commit();
    }
    await turn();
  }

  /** What a crash leaves: the durable entries, replayed by another process. */
  crash(): World {
    return new World(this.journal.entries.slice(0, this.journal.durable), this.clock);
  }

  async advance(ms: number): Promise<void> {
    this.clock.advance(ms);
    await this.commit();
  }

  /** The newest webhook. */
  get last(): Posted {
    const post = this.posts.at(-1);
    if (post === undefined) {
      throw new Error("no webhook was sent");
    }
    return post;
  }

  hold(answer: Answer): Reply {
    const reply = new Reply();
    this.streams.hold(answer.lsn, reply);
    return reply;
  }

  claim(id = "s", worker = "w1"): Answer {
    return this.subscriptions.claim(id, worker);
  }
}

export const webhook = (extras: Partial<Definition> = {}): Definition => ({
  target: { kind: "webhook", url: "http://127.0.0.1:9/hook?secret=1" },
  glob: new Glob("events/*"),
  streams: [],
  leaseMs: 1000,
  description: null,
  ...extras,
});

export const pull = (extras: Partial<Definition> = {}): Definition =>
  webhook({ target: { kind: "pull-wake", stream: "wake/pool" }, ...extras });

export const base = "http://here.test";

/** "200", or status-less "code". */
export const outcomeOf = (answer: Answer): string =>
  answer.kind === "done" ? String(answer.status) : answer.code;

export function bodyOf<T>(answer: Answer): T {
  if (answer.kind !== "done" || answer.body === null) {
    throw new Error(`no body: ${outcomeOf(answer)}`);
  }
  return answer.body as T;
}

/** The report a worker or receiver makes with what it was told. */
export const reportOf = (wake: WakeJson, extras: Partial<WakeReport> = {}): WakeReport => ({
  token: wake.callback_token ?? wake.token,
  wakeId: wake.wake_id,
  generation: wake.generation,
  acks: [],
  done: false,
  ...extras,
});

/** Acknowledges all that was told. */
export const allOf = ({ streams }: WakeJson): WakeReport["acks"] =>
  streams.map(({ path, tail_offset }) => ({ path, offset: tail_offset }));

const turn = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });
