import type { Ledger, Level } from "../support/ledger.ts";
import { loadRecord, type LoadRecord } from "../crash/record.ts";

/**
 * What a client does. `producer`: an idempotent producer at one level. `batch`: batch ids, ack=edge. `none`: ack=none, sent
 * once. `roamer`: a producer that moves to another edge every few requests, with a new epoch. `mixer`: one that changes
 * between ack=edge and ack=origin, with a new epoch.
 */
export type Habit = "producer" | "batch" | "none" | "roamer" | "mixer";

export interface ClientOptions {
  readonly habit: Habit;
  readonly level: Level;
  readonly name: string;
  readonly stream: string;
  /** The edge at home, and the others. */
  readonly edges: readonly { readonly url: string }[];
  readonly ledger: Ledger;
  /** Uniform in [0, 1), seeded. */
  readonly random: () => number;
}

/** Requests between two moves of a roamer or mixer. */
const stay = 8;
const abortShare = 0.1;
const patienceMs = 15_000;

/** Writes request after request; each goes out unchanged until it is acknowledged, and the ledger is told before and after. */
export class ChaosClient {
  readonly options: ClientOptions;
  /** Answers and failures, by status and code. */
  readonly outcomes = new Map<string, number>();
  attempts = 0;
  #stopping = false;

  constructor(options: ClientOptions) {
    this.options = options;
  }

  /** Until `stop`; then it finishes the request it is in. */
  async run(): Promise<void> {
    const { habit, random } = this.options;
    const moves = habit === "roamer" || habit === "mixer";
    for (let n = 0; !this.#stopping; n++) {
      const epoch = moves ? Math.floor(n / stay) : 0;
      await this.#write(epoch, moves ? n % stay : n);
      await sleep(random() * 60);
    }
  }

  stop(): void {
    this.#stopping = true;
  }

  async #write(epoch: number, seq: number): Promise<void> {
    const { ledger, name, random, stream } = this.options;
    const level = this.#levelAt(epoch);
    const producer = `${name}@${epoch}`;
    const records = Array.from({ length: 1 + Math.floor(random() * 3) }, (_, index) =>
      loadRecord(producer, seq, index, Math.floor(random() * 400)),
    );
    const about = { stream, producer, seq, records: records.length, level };
    await ledger.note({ what: "sent", ...about });
    if (level === "none") {
      await this.#post(epoch, seq, records);
      return;
    }
    while (!(await this.#acknowledged(epoch, seq, records))) {
      await sleep(20 + random() * 150);
    }
    await ledger.note({ what: "acked", ...about });
  }

  async #acknowledged(
    epoch: number,
    seq: number,
    records: readonly LoadRecord[],
  ): Promise<boolean> {
    const outcome = await this.#post(epoch, seq, records);
    if (/^4(?!29)/.test(outcome)) {
      throw new Error(`${this.options.name}@${epoch} #${seq} was refused: ${outcome}`);
    }
    return outcome.startsWith("2");
  }

  async #post(epoch: number, seq: number, records: readonly LoadRecord[]): Promise<string> {
    const { random } = this.options;
    this.attempts += 1;
    const ms = random() < abortShare ? Math.ceil(random() * 40) : patienceMs;
    const outcome = await this.#send(this.#request(epoch, seq), JSON.stringify(records), ms);
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
    return outcome;
  }

  async #send(
    [url, headers]: [string, Record<string, string>],
    body: string,
    ms: number,
  ): Promise<string> {
    try {
      const answer = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body,
        signal: AbortSignal.timeout(ms),
      });
      const text = await answer.text();
      return answer.status < 400 ? String(answer.status) : `${answer.status} ${codeOf(text)}`;
    } catch (error) {
      return `failed: ${error instanceof Error ? error.name : "?"}`;
    }
  }

  #request(epoch: number, seq: number): [string, Record<string, string>] {
    const { edges, habit, name, stream } = this.options;
    const edge = edges[habit === "roamer" ? epoch % edges.length : 0]?.url ?? "";
    const level = this.#levelAt(epoch);
    if (level === "origin") {
      const identity = { "producer-epoch": `${epoch}`, "producer-seq": `${seq}` };
      return [`${edge}/v1/stream/${stream}`, { "producer-id": name, ...identity }];
    }
    const ingest = `${edge}/v1/ingest/${stream}?ack=${level}`;
    switch (habit) {
      case "none":
        return [ingest, {}];
      case "batch":
        return [`${ingest}&batch=${name}-${seq}`, {}];
      case "producer":
      case "roamer":
      case "mixer":
        return [`${ingest}&producerId=${name}&epoch=${epoch}&seq=${seq}`, {}];
    }
  }

  #levelAt(epoch: number): Level {
    const { habit, level } = this.options;
    return habit === "mixer" ? (epoch % 2 === 0 ? "edge" : "origin") : level;
  }
}

function codeOf(problem: string): string {
  try {
    return String((JSON.parse(problem) as { code?: unknown }).code);
  } catch {
    return problem.slice(0, 80);
  }
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
