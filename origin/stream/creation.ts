import { formatOffset, isJson, isReservedPath } from "../../shared/protocol/mod.ts";
import { clampTime } from "./bytes.ts";
import { type AppendOp, type CreateOp, newStream } from "./entry.ts";
import { judgeFork } from "./forks.ts";
import { newStreamType, recordsOf, type Write } from "./request.ts";
import type { Shard } from "./shard.ts";
import { type Fork, recordTime, type StreamState } from "./state.ts";
import type { CreateRequest, ForkRequest, Verdict } from "./types.ts";
import { created, refuse, reserved } from "./verdict.ts";
import { appendOp, makeStream, refusedBy } from "./writes.ts";

const defaultType = "application/octet-stream";

/** PUT: creates the stream, or finds it with the same configuration (Durable Streams §5.1; forks §4.2). */
export function create(shard: Shard, request: CreateRequest): Verdict {
  const { path } = request;
  if (isReservedPath(path)) {
    return reserved(path);
  }
  const now = shard.clock.now();
  const existing = shard.find(path, now);
  const softDeleted = shard.state.softDeleted.get(path);
  if (softDeleted !== undefined) {
    const detail = `${JSON.stringify(path)} is free again when the last fork of it has ended`;
    return refuse("path_held", detail, softDeleted.lsn);
  }
  let made: Creation | Verdict;
  try {
    made = existing === undefined ? plan(shard, request, now) : createdAgain(existing, request);
  } catch (error) {
    return refusedBy(error, shard.state.endLsn);
  }
  return "status" in made ? made : created(makeStream(shard, made.op, made.append), 201);
}

/** A new stream and its first records, judged. */
interface Creation {
  readonly op: CreateOp;
  readonly append: AppendOp | null;
}

function plan(shard: Shard, request: CreateRequest, now: number): Creation | Verdict {
  const fork = request.fork === null ? null : judgeFork(shard, request.fork, request, now);
  if (fork !== null && "status" in fork) {
    return fork;
  }
  const source = fork?.source ?? null;
  const contentType = request.contentType ?? source?.contentType ?? defaultType;
  const json = isJson(newStreamType(contentType));
  const { path, body, closed } = request;
  const first: Write = { ...plain, path, contentType, body, close: closed };
  const records = recordsOf(json, first, true);
  shard.store.admit(body.length);
  const time = source === null ? now : recordTime(source, now);
  const op: CreateOp = {
    ...newStream(shard.state.lastId + 1, path, contentType, time),
    ...lifetimeOf(request, source),
    fork: fork?.edge ?? null,
    closed: closed && records.length === 0,
  };
  return { op, append: records.length === 0 ? null : appendOp(op.id, first, records, time) };
}

const plain = {
  split: null,
  checked: false,
  producer: null,
  streamSeq: null,
  expectedOffset: null,
  create: false,
} as const;

/** A fork that asks for neither TTL nor Expires-At gets its source's, with a sliding window of its own. */
function lifetimeOf(
  { ttlSeconds, expiresAt }: CreateRequest,
  source: StreamState | null,
): Pick<CreateOp, "ttlSeconds" | "expiresAt"> {
  if (ttlSeconds === null && expiresAt === null && source !== null) {
    return { ttlSeconds: source.ttlSeconds, expiresAt: source.expiresAt };
  }
  const instant = expiresAt && { text: expiresAt.text, ms: clampTime(expiresAt.ms) };
  return { ttlSeconds, expiresAt: instant };
}

function createdAgain(stream: StreamState, request: CreateRequest): Verdict {
  const { contentType, closed } = request;
  const { ttlSeconds, expiresAt } = lifetimeOf(request, stream.fork?.source ?? null);
  const inherits = contentType === null && stream.fork !== null;
  const same =
    sameBeginning(stream.fork, request.fork) &&
    (inherits || newStreamType(contentType ?? defaultType) === stream.mediaType) &&
    ttlSeconds === stream.ttlSeconds &&
    expiresAt?.ms === stream.expiresAt?.ms &&
    closed === stream.closed;
  if (same) {
    return created(stream, 200);
  }
  const detail =
    `${JSON.stringify(stream.path)} exists as ${stream.contentType}, TTL ${stream.ttlSeconds ?? "none"}, ` +
    `Expires-At ${stream.expiresAt?.text ?? "none"}, ${stream.closed ? "closed" : "open"}, ` +
    beginningOf(stream.fork);
  return refuse("stream_conflict", detail, stream.lsn);
}

/** Asked for without an offset a fork is the same wherever its source's tail was then: a retry does not know. */
function sameBeginning(fork: Fork | null, asked: ForkRequest | null): boolean {
  if (fork === null || asked === null) {
    return fork === asked;
  }
  const { offset, source, subOffset } = fork;
  return (
    source.path === asked.from &&
    subOffset === asked.subOffset &&
    (asked.offset === null || asked.offset === formatOffset(offset.record, offset.byte))
  );
}

function beginningOf(fork: Fork | null): string {
  if (fork === null) {
    return "no fork";
  }
  const { record, byte } = fork.offset;
  return `forked from ${JSON.stringify(fork.source.path)} at ${formatOffset(record, byte)} and ${fork.subOffset}`;
}
