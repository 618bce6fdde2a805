import { shapeOf } from "./content.ts";
import { arrayItems } from "./jsonArray.ts";
import type { ReadAnswer, Remote } from "./remote.ts";
import { print, printLine, type Terminal } from "./terminal.ts";

export interface ReadCommand {
  readonly stream: string;
  readonly offset: string;
  readonly json: boolean;
}

/** `forebay read`: everything from an offset to the present end. */
export async function read(
  remote: Remote,
  options: ReadCommand,
  terminal: Terminal,
): Promise<void> {
  for await (const answer of pages(remote, options.stream, options.offset)) {
    await show(answer, options, terminal);
  }
}

/** The answers of one read after the other, up to the present end. */
export async function* pages(
  remote: Remote,
  stream: string,
  from: string,
): AsyncGenerator<ReadAnswer> {
  let offset = from;
  let done = false;
  while (!done) {
    const answer = await remote.read(stream, { offset });
    // An answer that does not get ahead would come back forever.
    done = answer.upToDate || answer.closed || answer.next === offset;
    offset = answer.next;
    yield answer;
  }
}

/** Prints an answer: a JSON stream one value per line, others as they are; with `json` one document. */
export async function show(
  answer: ReadAnswer,
  options: { readonly stream: string; readonly json: boolean },
  terminal: Terminal,
): Promise<void> {
  if (options.json) {
    await printLine(terminal, document(answer, options.stream));
    return;
  }
  if (answer.body.length === 0) {
    return;
  }
  const items = jsonItems(answer);
  await print(terminal, items === null ? answer.body : items.map((item) => `${item}\n`).join(""));
}

/** The records of a JSON stream's answer as text, null for other types. */
export function jsonItems(answer: ReadAnswer): string[] | null {
  return shapeOf(answer.contentType) === "json" ? arrayItems(textOf(answer.body)) : null;
}

export function textOf(body: Uint8Array): string {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8");
}

/** `records` as they came for JSON, `text` for text, `base64` for the rest. */
function document(answer: ReadAnswer, stream: string): string {
  const { next, upToDate, closed, contentType } = answer;
  const head = JSON.stringify({ stream, contentType, next, upToDate, closed }).slice(0, -1);
  const items = jsonItems(answer);
  if (items !== null) {
    return `${head},"records":[${items.join(",")}]}`;
  }
  const content =
    shapeOf(contentType) === "lines"
      ? { text: textOf(answer.body) }
      : { base64: Buffer.from(answer.body).toString("base64") };
  return `${head},${JSON.stringify(content).slice(1)}`;
}
