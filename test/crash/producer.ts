import { loadRecord, type LoadRecord } from "./record.ts";

export type ProducerKind = "origin" | "edge" | "batch";

export interface ProducerOptions {
  readonly kind: ProducerKind;
  readonly name: string;
  readonly stream: string;
  readonly edgeUrl: string;
  /** Uniform in [0, 1), seeded. */
  readonly random: () => number;
}

/**
 * One client that writes request after request and retries each, unchanged, until it is acknowledged:
 * `origin` appends as an idempotent producer with ack=origin, `edge` ingests as one with ack=edge, `batch`
 * ingests under a batch id alone.
 */
export class LoadProducer {
  /** Records of acknowledged requests, in order: the ledger this client can swear to. */
  readonly acknowledged: LoadRecord[] = [];
  attempts = 0;
  readonly statuses: Map<string, number> = new Map();
  readonly options: ProducerOptions;
  private stopping = false;

  constructor(options: ProducerOptions) {
    this.options = options;
  }

  /** Runs until `stop`, then finishes the request it is in. */
  async run(): Promise<void> {
    for (let seq = 0; !this.stopping; seq++) {
      const { name, random } = this.options;
      const records = Array.from({ length: 1 + Math.floor(random() * 3) }, (_, index) =>
        loadRecord(name, seq, index, Math.floor(random() * 300)),
      );
      await this.untilAcknowledged(seq, records);
      this.acknowledged.push(...records);
    }
  }

  stop(): void {
    this.stopping = true;
  }

  private async untilAcknowledged(seq: number, records: readonly LoadRecord[]): Promise<void> {
    const body = JSON.stringify(records);
    for (;;) {
      this.attempts++;
      const outcome = await this.post(seq, body);
      this.statuses.set(outcome, (this.statuses.get(outcome) ?? 0) + 1);
      if (outcome === "200" || outcome === "202" || outcome === "204") {
        return;
      }
      if (outcome.startsWith("4") && outcome !== "429") {
        throw new Error(`${this.options.name} #${seq} was refused: ${outcome}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 20 + this.options.random() * 60));
    }
  }

  private async post(seq: number, body: string): Promise<string> {
    try {
      const answer = await fetch(this.target(seq), {
        method: "POST",
        headers: { "content-type": "application/json", ...this.headers(seq) },
        body,
        signal: AbortSignal.timeout(15_000),
      });
      const text = await answer.text();
      return answer.status < 400 ? String(answer.status) : `${answer.status} ${codeOf(text)}`;
    } catch (error) {
      return `failed: ${error instanceof Error ? error.name : "?"}`;
    }
  }

  private target(seq: number): string {
    const { kind, name, stream, edgeUrl } = this.options;
    if (kind === "origin") {
      return `${edgeUrl}/v1/stream/${stream}`;
    }
    const identity =
      kind === "edge" ? `producerId=${name}&epoch=0&seq=${seq}` : `batch=${name}-${seq}`;
    return `${edgeUrl}/v1/ingest/${stream}?${identity}`;
  }

  private headers(seq: number): Record<string, string> {
    const { kind, name } = this.options;
    return kind === "origin"
      ? { "producer-id": name, "producer-epoch": "0", "producer-seq": String(seq) }
      : {};
  }
}

function codeOf(problem: string): string {
  try {
    return String((JSON.parse(problem) as { code?: unknown }).code);
  } catch {
    return problem.slice(0, 80);
  }
}
