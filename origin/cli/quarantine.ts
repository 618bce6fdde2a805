import { ForebayError } from "../../shared/errors/mod.ts";
import { shapeOf, type Shape } from "./content.ts";
import { jsonItems, pages } from "./read.ts";
import type { Remote } from "./remote.ts";
import { print, printLine, type Terminal } from "./terminal.ts";

/** One record of the quarantine stream (origin/stream/FORMAT.md): a refused request. */
interface Held {
  readonly stream: string;
  readonly code: string;
  readonly buffer: string;
  readonly fsn: number;
  readonly contentType: string | null;
  readonly producer: { readonly id: string; readonly epoch: number; readonly seq: number } | null;
  /** The records are values, split by the edge; otherwise there is one, a body as it came. */
  readonly split: boolean;
  readonly records: readonly Content[];
}

interface Content {
  readonly text?: string;
  readonly base64?: string;
}

const path = "_forebay/quarantine";

export async function listQuarantine(
  remote: Remote,
  json: boolean,
  terminal: Terminal,
): Promise<void> {
  for await (const [number, held] of allHeld(remote)) {
    const { stream, code, producer, records } = held;
    const who = producer === null ? "" : `${producer.id}@${producer.epoch}#${producer.seq}`;
    const count = records.length === 1 ? "" : `${records.length} records`;
    const shown = [number, code, stream, who, count].filter((field) => field !== "").join("  ");
    await printLine(terminal, json ? JSON.stringify({ number, ...held }) : shown);
  }
}

export async function showQuarantine(
  remote: Remote,
  { number, json }: { readonly number: number; readonly json: boolean },
  terminal: Terminal,
): Promise<void> {
  const held = await find(remote, number);
  if (json) {
    await printLine(terminal, JSON.stringify({ number, ...held }));
    return;
  }
  for (const record of held.records) {
    await print(terminal, bytesOf(record));
    await print(terminal, "\n");
  }
}

/** Appends what is held to its stream, or to another: the refusal that it met once may be met again. */
export async function replayQuarantine(
  remote: Remote,
  options: { readonly number: number; readonly to: string | null; readonly json: boolean },
  terminal: Terminal,
): Promise<void> {
  const { number, to, json } = options;
  const held = await find(remote, number);
  const stream = to ?? held.stream;
  const contentType = held.contentType ?? (await remote.head(stream));
  const next = await remote.append(stream, contentType, bodyOf(held, shapeOf(contentType)));
  await printLine(terminal, json ? JSON.stringify({ number, stream, next }) : next);
}

/** Everything held, numbered from 0 in the order it was set aside; nothing when nothing ever was. */
async function* allHeld(remote: Remote): AsyncGenerator<readonly [number, Held]> {
  let number = 0;
  try {
    for await (const answer of pages(remote, path, "-1")) {
      for (const item of jsonItems(answer) ?? []) {
        yield [number, JSON.parse(item) as Held];
        number += 1;
      }
    }
  } catch (error) {
    if (!(error instanceof ForebayError && error.code === "stream_not_found")) {
      throw error;
    }
  }
}

async function find(remote: Remote, wanted: number): Promise<Held> {
  for await (const [number, held] of allHeld(remote)) {
    if (number === wanted) {
      return held;
    }
  }
  throw new ForebayError("not_found", `the quarantine holds no record ${wanted}`);
}

/** The request's body again. Values that were split go into an array, because one level of it is taken off. */
function bodyOf({ split, records }: Held, shape: Shape): Uint8Array {
  const [open, between, close] = split && shape === "json" ? ["[", ",", "]"] : ["", "\n", ""];
  const parts = records.flatMap((record, i) => [
    Buffer.from(i === 0 ? open : between),
    bytesOf(record),
  ]);
  return Buffer.concat([...parts, Buffer.from(close)]);
}

function bytesOf({ text, base64 }: Content): Uint8Array {
  return base64 === undefined ? Buffer.from(text ?? "") : Buffer.from(base64, "base64");
}
