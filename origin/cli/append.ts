import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { ForebayError } from "../../shared/errors/mod.ts";
import { bodyOf, shapeOf, type Shape } from "./content.ts";
import type { Remote } from "./remote.ts";
import { printLine, type Terminal } from "./terminal.ts";

export interface AppendOptions {
  readonly stream: string;
  /** Records of the command line; none, or one `-`, reads stdin. */
  readonly data: readonly string[];
  readonly create: boolean;
  readonly contentType: string | null;
  readonly json: boolean;
}

/** One request holds no more than this, well below the server's own limits. */
const requestRecordsMax = 1000;
const requestCharsMax = 256 * 1024;
const defaultContentType = "application/json";

/** `forebay append`: the records in order, each request after the answer to the one before. */
export async function append(
  remote: Remote,
  options: AppendOptions,
  terminal: Terminal,
): Promise<void> {
  const contentType = await typeFor(remote, options);
  const shape = shapeOf(contentType);
  let records = 0;
  let bytes = 0;
  let next = "";
  for await (const batch of batches(options.data, terminal.stdin, shape)) {
    const body = Array.isArray(batch) ? bodyOf(batch, shape, records + 1) : batch;
    next = await remote.append(options.stream, contentType, body);
    records += Array.isArray(batch) ? batch.length : 1;
    bytes += body.length;
  }
  if (records === 0) {
    throw new ForebayError("empty_body", "stdin held no record; nothing was appended");
  }
  await printLine(
    terminal,
    options.json ? JSON.stringify({ stream: options.stream, records, bytes, next }) : next,
  );
}

/** The stream's content type: the one asked for, or its own; with `create` it exists afterwards. */
async function typeFor(remote: Remote, options: AppendOptions): Promise<string> {
  const { stream, create, contentType } = options;
  if (!create) {
    return contentType ?? (await remote.head(stream));
  }
  if (contentType === null) {
    try {
      return await remote.head(stream);
    } catch (error) {
      if (!(error instanceof ForebayError && error.code === "stream_not_found")) {
        throw error;
      }
    }
  }
  const type = contentType ?? defaultContentType;
  await remote.create(stream, type);
  return type;
}

async function* batches(
  data: readonly string[],
  stdin: Readable,
  shape: Shape,
): AsyncGenerator<string[] | Uint8Array> {
  if (data.length > 0 && !(data.length === 1 && data[0] === "-")) {
    yield* requests(data);
    return;
  }
  if (shape === "bytes") {
    for await (const chunk of stdin) {
      yield Buffer.from(chunk);
    }
    return;
  }
  // What has arrived goes out at once, so that `something | forebay append s -` is live.
  for await (const lines of arrivingLines(stdin)) {
    yield* requests(lines);
  }
}

/** Records in pieces of one request. */
function* requests(records: readonly string[]): Generator<string[]> {
  let batch: string[] = [];
  let chars = 0;
  for (const record of records) {
    if (
      batch.length > 0 &&
      (batch.length === requestRecordsMax || chars + record.length > requestCharsMax)
    ) {
      yield batch;
      batch = [];
      chars = 0;
    }
    batch.push(record);
    chars += record.length;
  }
  if (batch.length > 0) {
    yield batch;
  }
}

/** The lines of each chunk that came, without their ends; empty ones are left out. */
async function* arrivingLines(stdin: Readable): AsyncGenerator<string[]> {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  for await (const chunk of stdin) {
    const lines = (rest + decoder.write(Buffer.from(chunk))).split("\n");
    rest = lines.pop() ?? "";
    yield withoutEmpty(lines);
  }
  yield withoutEmpty([rest + decoder.end()]);
}

function withoutEmpty(lines: readonly string[]): string[] {
  return lines.map((line) => line.replace(/\r$/, "")).filter((line) => line.trim() !== "");
}
