import { header, mediaType, type Offset, parseOffset } from "../../shared/protocol/mod.ts";
import type { ForkEdge } from "./entry.ts";
import { positionOf } from "./lineage.ts";
import type { Shard } from "./shard.ts";
import type { StreamState } from "./state.ts";
import type { CreateRequest, ForkRequest, Verdict } from "./types.ts";
import { absent, refuse, tailOf } from "./verdict.ts";

/** A fork that may be made. */
export interface ForkPlan {
  readonly source: StreamState;
  readonly edge: ForkEdge;
}

/**
 * Judges a fork by its source (Durable Streams §4.2). Nothing refers to the source before the fork is in the journal, so
 * a refused one leaves no trace.
 *
 * @throws ForebayError `bad_header` for a content type that is none
 */
export function judgeFork(
  shard: Shard,
  fork: ForkRequest,
  { contentType }: CreateRequest,
  now: number,
): ForkPlan | Verdict {
  const source = shard.find(fork.from, now);
  if (source === undefined) {
    const none = absent(shard.state, fork.from);
    return none.code === "stream_gone" ? refuse("source_gone", none.detail ?? "", none.lsn) : none;
  }
  if (contentType !== null && mediaType(contentType) !== source.mediaType) {
    const detail = `the source ${JSON.stringify(fork.from)} is ${source.contentType}, not ${contentType}`;
    return refuse("content_type_mismatch", detail, source.lsn);
  }
  const edge = edgeTo(shard, source, fork);
  if (edge !== null) {
    return { source, edge };
  }
  const asked = `${JSON.stringify(fork.offset?.slice(0, 64) ?? "the tail")} and ${fork.subOffset} past it`;
  const tail = tailOf(source);
  const detail = `a fork at ${asked} begins nowhere in ${JSON.stringify(fork.from)}, whose tail is ${tail}`;
  return refuse("bad_offset", detail, source.lsn, [header.nextOffset, tail]);
}

function edgeTo(shard: Shard, source: StreamState, fork: ForkRequest): ForkEdge | null {
  const tail = { record: source.record, byte: source.byte };
  const offset = fork.offset === null ? tail : parseOffset(fork.offset);
  if (
    offset === undefined ||
    offset.record > source.record ||
    positionOf(shard.store, source, offset.record) !== offset.byte
  ) {
    return null;
  }
  const end = endOf(shard, source, offset, fork.subOffset);
  return end === null
    ? null
    : {
        source: source.id,
        offset,
        subOffset: fork.subOffset,
        records: end.record,
        bytes: end.byte,
      };
}

/** How much of the source lies before the sub-offset; null when it points past what a sub-offset can reach. */
function endOf(
  { store }: Shard,
  source: StreamState,
  offset: Offset,
  subOffset: number,
): Offset | null {
  if (subOffset === 0) {
    return offset;
  }
  const record = offset.record + (source.json ? subOffset : 1);
  if (record > source.record) {
    return null;
  }
  const recordEnd = positionOf(store, source, record);
  if (source.json) {
    return { record, byte: recordEnd };
  }
  const byte = offset.byte + subOffset;
  return byte > recordEnd ? null : { record, byte };
}
