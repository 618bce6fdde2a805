import { request, type IncomingMessage } from "node:http";

export interface SseEvent {
  readonly event: string;
  readonly data: string;
}

export interface Control {
  readonly streamNextOffset: string;
  readonly streamCursor?: string;
  readonly upToDate?: boolean;
  readonly streamClosed?: boolean;
}

/** A plain reader of one SSE answer, which can stop reading. */
export class SseClient {
  readonly answer: IncomingMessage;
  readonly events: SseEvent[] = [];
  ended = false;
  #text = "";

  static open(url: string): Promise<SseClient> {
    return new Promise((resolve, reject) => {
      request(url, (answer) => resolve(new SseClient(answer)))
        .on("error", reject)
        .end();
    });
  }

  private constructor(answer: IncomingMessage) {
    this.answer = answer;
    answer.setEncoding("utf8");
    answer.on("data", (chunk: string) => this.#take(chunk));
    answer.on("error", () => (this.ended = true));
    answer.on("close", () => (this.ended = true));
  }

  /** Lines as the HTML standard's parser takes them (server-sent events, §9.2.6). */
  #take(chunk: string): void {
    this.#text += chunk;
    const blocks = this.#text.split("\n\n");
    this.#text = blocks.pop() ?? "";
    for (const block of blocks) {
      let event = "message";
      const data: string[] = [];
      for (const line of block.split(/\r\n|\r|\n/)) {
        const [name = "", ...rest] = line.split(":");
        const value = rest.join(":").replace(/^ /, "");
        if (name === "event") {
          event = value;
        } else if (name === "data") {
          data.push(value);
        }
      }
      this.events.push({ event, data: data.join("\n") });
    }
  }

  get controls(): Control[] {
    return this.events
      .filter(({ event }) => event === "control")
      .map(({ data }) => JSON.parse(data) as Control);
  }

  /** Payloads of all data events. */
  get data(): string[] {
    return this.events.filter(({ event }) => event === "data").map(({ data }) => data);
  }

  close(): void {
    this.answer.destroy();
  }
}
