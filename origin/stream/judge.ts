import { invariant } from "../../shared/errors/mod.ts";
import type { ProducerTag } from "../../shared/frame/mod.ts";
import type { Lsn } from "../../shared/ids/mod.ts";
import { limits } from "../../shared/limits.ts";
import { compareSeq, header, mediaType } from "../../shared/protocol/mod.ts";
import type { ProducerState, SeqJudgement } from "./producer.ts";
import type { Write } from "./request.ts";
import { isIdle, type StreamState } from "./state.ts";
import type { Verdict } from "./types.ts";
import { duplicate, refuse, stored, tailOf } from "./verdict.ts";

/**
 * The protocol's order of checks on a living stream: stale epoch, duplicate, closed, content type, gap, Stream-Seq,
 * expected offset. `seq` is how the producer's seq stands to what the stream remembers (`known`). The gap comes
 * before the two that judge by the tail, which the missing requests would still move.
 *
 * @returns the answer, or null when the write is to be stored
 */
export function judgeWrite(
  stream: StreamState,
  write: Write,
  seq: SeqJudgement,
  known: ProducerState | undefined,
): Verdict | null {
  if (known !== undefined && seq === "stale") {
    const detail = `producer epoch ${write.producer?.epoch} is below ${known.epoch}`;
    return refuse("stale_epoch", detail, stream.lsn, [header.producerEpoch, String(known.epoch)]);
  }
  if (known !== undefined && seq === "duplicate") {
    return duplicate(stream, known.epoch, known.highest);
  }
  if (stream.closed) {
    return judgeClosed(stream, write);
  }
  if ((write.split !== null || write.body.length > 0) && !typeMatches(stream, write.contentType)) {
    const detail = `the stream is ${stream.contentType}, not ${write.contentType ?? "JSON"}`;
    return refuse("content_type_mismatch", detail, stream.lsn);
  }
  if (seq !== "fresh") {
    invariant(write.producer !== null, "only a producer's seq can be out of place");
    return refuseSeq(stream.lsn, write.producer, seq, known);
  }
  const { streamSeq, expectedOffset } = write;
  if (isRegression(streamSeq, stream.streamSeq)) {
    const detail = `Stream-Seq ${JSON.stringify(streamSeq)} is not above ${JSON.stringify(stream.streamSeq)}`;
    return refuse("stream_seq_regression", detail, stream.lsn);
  }
  if (expectedOffset !== null && expectedOffset !== tailOf(stream)) {
    const tail = tailOf(stream);
    const detail = `the tail is ${tail}, not ${JSON.stringify(expectedOffset)}`;
    return refuse("offset_mismatch", detail, stream.lsn, [header.nextOffset, tail]);
  }
  return null;
}

/** Whether a Stream-Seq does not rise above the last one. */
export function isRegression(streamSeq: string | null, last: string | null): boolean {
  return streamSeq !== null && last !== null && compareSeq(streamSeq, last) <= 0;
}

/** A close without body and producer is idempotent; anything else on a closed stream is a conflict. */
function judgeClosed(stream: StreamState, write: Write): Verdict {
  if (write.close && write.producer === null && write.split === null && write.body.length === 0) {
    return stored(stream, null, true);
  }
  const tail = tailOf(stream);
  const headers = [header.closed, "true", header.nextOffset, tail];
  return refuse("stream_closed", `the stream was closed at ${tail}`, stream.lsn, headers);
}

function typeMatches(stream: StreamState, contentType: string | null): boolean {
  if (contentType === null) {
    return stream.json;
  }
  return contentType === stream.contentType || mediaType(contentType) === stream.mediaType;
}

export function refuseSeq(
  judgedBy: Lsn,
  tag: ProducerTag,
  seq: SeqJudgement,
  known: ProducerState | undefined,
): Verdict {
  if (seq === "badStart") {
    const detail = `producer epoch ${tag.epoch} starts at seq ${tag.seq} instead of 0`;
    return refuse("bad_epoch_start", detail, judgedBy);
  }
  if (seq === "tooOld") {
    const detail = `seq ${tag.seq} is below the window that ends at ${known?.highest}`;
    return refuse("seq_too_old", detail, judgedBy);
  }
  const expected = known === undefined ? 0 : known.highest + 1;
  const detail = `seq ${tag.seq} came where ${expected} is next`;
  return refuse("producer_gap", detail, judgedBy, [
    header.producerExpectedSeq,
    String(expected),
    header.producerReceivedSeq,
    String(tag.seq),
  ]);
}

/** Whether one more producer, besides `more` others about to come, finds no place even when the idle ones leave. */
export function producersFull(stream: StreamState, now: number, more: number): boolean {
  const producers = stream.producers;
  const held = producers === null ? more : producers.size + more;
  if (producers === null || held < limits.producersPerStreamMax) {
    return held >= limits.producersPerStreamMax;
  }
  if (now < stream.producersIdleFrom) {
    return true;
  }
  let idle = 0;
  let oldest = now;
  for (const producer of producers.values()) {
    idle += isIdle(producer, now) ? 1 : 0;
    oldest = Math.min(oldest, producer.usedAt);
  }
  stream.producersIdleFrom = idle > 0 ? 0 : oldest + limits.producerIdleMsMax;
  return held - idle >= limits.producersPerStreamMax;
}

export function tooManyProducers(stream: StreamState): Verdict {
  const detail = `the stream remembers ${limits.producersPerStreamMax} producers; wait until one was idle for 7 days`;
  return refuse("too_many_producers", detail, stream.lsn);
}
