import { catalogue, type ErrorCode, type ForebayError } from "../../shared/errors/mod.ts";
import type { ProducerTag, RequestResult } from "../../shared/frame/mod.ts";
import { type Lsn, lsn } from "../../shared/ids/mod.ts";
import { formatOffset, header } from "../../shared/protocol/mod.ts";
import type { ShardState, StreamState } from "./state.ts";
import type { Verdict } from "./types.ts";

/** Judged by the request alone: nothing to wait for. */
export const atOnce: Lsn = lsn(0);

export function tailOf(stream: StreamState): string {
  return formatOffset(stream.record, stream.byte);
}

export function refuse(
  code: ErrorCode,
  detail: string,
  judgedBy: Lsn,
  headers: readonly string[] = [],
): Verdict {
  return { status: catalogue[code].status, code, detail, headers, lsn: judgedBy };
}

/** A catalogue error met while judging (a body that is no JSON, a full store) as the refusal it is. */
export function refusalOf(error: ForebayError, judgedBy: Lsn): Verdict {
  return refuse(error.code, error.message, judgedBy, Object.entries(error.headers).flat());
}

/** The answer to an append or a close that is stored. */
export function stored(stream: StreamState, producer: ProducerTag | null, bare: boolean): Verdict {
  const headers = [header.nextOffset, tailOf(stream)];
  if (stream.closed) {
    headers.push(header.closed, "true");
  }
  if (producer === null) {
    return { status: 204, code: null, detail: null, headers, lsn: stream.lsn };
  }
  headers.push(
    header.producerEpoch,
    String(producer.epoch),
    header.producerSeq,
    String(producer.seq),
  );
  return { status: bare ? 204 : 200, code: null, detail: null, headers, lsn: stream.lsn };
}

/** `Producer-Seq` is the highest seq stored, not the one repeated (Durable Streams §5.2.1). */
export function duplicate(stream: StreamState, epoch: number, highest: number): Verdict {
  const headers = [
    header.nextOffset,
    tailOf(stream),
    header.producerEpoch,
    String(epoch),
    header.producerSeq,
    String(highest),
  ];
  if (stream.closed) {
    headers.push(header.closed, "true");
  }
  return { status: 204, code: null, detail: null, headers, lsn: stream.lsn };
}

export function created(stream: StreamState, status: 200 | 201): Verdict {
  const headers = ["content-type", stream.contentType, header.nextOffset, tailOf(stream)];
  if (stream.closed) {
    headers.push(header.closed, "true");
  }
  return { status, code: null, detail: null, headers, lsn: stream.lsn };
}

export function removed(judgedBy: Lsn): Verdict {
  return { status: 204, code: null, detail: null, headers: [], lsn: judgedBy };
}

/** No living stream at `path`: none at all (404), or one that ended and that forks still read (410). */
export function absent(state: ShardState, path: string): Verdict {
  const softDeleted = state.softDeleted.get(path);
  if (softDeleted !== undefined) {
    const detail = `the stream at ${JSON.stringify(path)} has ended; only its forks read it`;
    return refuse("stream_gone", detail, softDeleted.lsn);
  }
  return refuse("stream_not_found", `there is no stream at ${JSON.stringify(path)}`, state.endLsn);
}

export function reserved(path: string): Verdict {
  return refuse("reserved_path", `${JSON.stringify(path)} is written by Forebay only`, atOnce);
}

/** A verdict as a result of a direct frame. A refusal that may be retried says when (P12). */
export function resultOf(verdict: Verdict): RequestResult {
  const headers: Record<string, string> = {};
  if (verdict.code !== null && catalogue[verdict.code].retryable) {
    headers["retry-after"] = "1";
  }
  for (let i = 0; i + 1 < verdict.headers.length; i += 2) {
    const [name, value] = [verdict.headers[i], verdict.headers[i + 1]];
    if (name !== undefined && value !== undefined) {
      headers[name] = value;
    }
  }
  return { status: verdict.status, code: verdict.code, detail: verdict.detail, headers };
}
