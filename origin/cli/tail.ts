import { ForebayError } from "../../shared/errors/mod.ts";
import { pause } from "../ports/mod.ts";
import { jsonItems, pages, show, textOf } from "./read.ts";
import type { ReadAnswer, Remote } from "./remote.ts";
import { shapeOf } from "./content.ts";
import { print, remark, type Terminal } from "./terminal.ts";

export interface TailCommand {
  readonly stream: string;
  /** Records (JSON) or lines (text) to show from the end; not used with an offset. */
  readonly lines: number;
  /** Where to begin instead, or null. */
  readonly offset: string | null;
  readonly follow: boolean;
  readonly json: boolean;
}

const retryMsMin = 200;
const retryMsMax = 10_000;

/** `forebay tail`: the last records, and with `follow` all that come after until the stream is closed. */
export async function tail(
  remote: Remote,
  options: TailCommand,
  terminal: Terminal,
): Promise<void> {
  const end = await begin(remote, options, terminal);
  if (options.follow && !end.closed) {
    await follow(remote, options, { offset: end.next, terminal });
  }
}

/** Prints what is there already and returns where it ends. */
async function begin(
  remote: Remote,
  options: TailCommand,
  terminal: Terminal,
): Promise<{ readonly next: string; readonly closed: boolean }> {
  if (options.offset !== null || options.lines === 0) {
    let end = { next: "", closed: false };
    for await (const answer of pages(remote, options.stream, options.offset ?? "now")) {
      end = answer;
      if (options.offset !== null) {
        await show(answer, options, terminal);
      }
    }
    return end;
  }
  const last = new LastRecords(options.lines);
  for await (const answer of pages(remote, options.stream, "-1")) {
    last.take(answer);
  }
  const { answer } = last;
  await (options.json ? show(answer, options, terminal) : print(terminal, printable(answer)));
  return answer;
}

function printable(answer: ReadAnswer): string | Uint8Array {
  return (
    jsonItems(answer)
      ?.map((item) => `${item}\n`)
      .join("") ?? answer.body
  );
}

/** Keeps the last records of all answers taken, as one answer. */
class LastRecords {
  readonly #max: number;
  #kept: string[] = [];
  #answer: ReadAnswer | null = null;

  constructor(max: number) {
    this.#max = max;
  }

  take(answer: ReadAnswer): void {
    this.#answer = answer;
    const items = jsonItems(answer);
    if (items !== null) {
      this.#kept = [...this.#kept, ...items].slice(-this.#max);
    } else if (shapeOf(answer.contentType) === "lines") {
      // A line may go on in the next answer, so the last piece stays open.
      const text = this.#kept.join("") + textOf(answer.body);
      this.#kept = text.split(/(?<=\n)/).slice(-this.#max);
    } else {
      // Bytes have no records to count: the last answer it is.
      this.#kept = [];
    }
  }

  get answer(): ReadAnswer {
    const last = this.#answer;
    if (last === null) {
      throw new ForebayError("internal", "the stream gave no answer");
    }
    if (jsonItems(last) !== null) {
      return { ...last, body: Buffer.from(`[${this.#kept.join(",")}]`) };
    }
    return this.#kept.length > 0 ? { ...last, body: Buffer.from(this.#kept.join("")) } : last;
  }
}

/** Long-polls from `offset` until the stream is closed, through lost connections and restarts of the server. */
async function follow(
  remote: Remote,
  options: TailCommand,
  from: { readonly offset: string; readonly terminal: Terminal },
): Promise<void> {
  let { offset } = from;
  let cursor: string | null = null;
  let failures = 0;
  let closed = false;
  while (!closed) {
    let answer: ReadAnswer;
    try {
      answer = await remote.read(options.stream, { offset, longPoll: true, cursor });
    } catch (error) {
      failures += 1;
      await waitToRetry(error, failures, from.terminal);
      continue;
    }
    if (failures > 0) {
      remark(from.terminal, "connected again");
      failures = 0;
    }
    if (answer.body.length > 0) {
      await show(answer, options, from.terminal);
    }
    ({ next: offset, cursor, closed } = answer);
  }
}

/** Waits before the next try of what may heal; throws on what cannot. */
async function waitToRetry(error: unknown, failures: number, terminal: Terminal): Promise<void> {
  if (!(error instanceof ForebayError && error.retryable)) {
    throw error;
  }
  if (failures === 1) {
    remark(terminal, `waiting: ${error.message}`);
  }
  const backoff = Math.min(retryMsMax, retryMsMin * 2 ** (failures - 1));
  const asked = error.code === "origin_unreachable" ? 0 : (error.retryAfterSeconds ?? 0) * 1000;
  await pause(Math.max(backoff, asked));
}
