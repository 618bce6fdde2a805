import { ForebayError, invariant } from "../../shared/errors/mod.ts";
import { type Frame, frameFlag, type RequestResult } from "../../shared/frame/mod.ts";
import { type Lsn, lsn } from "../../shared/ids/mod.ts";
import { limits } from "../../shared/limits.ts";
import { FrameDraft } from "./draft.ts";
import { type FrameRefusal, judgeFsn, refuseFrame } from "./outbox.ts";
import { writeOf } from "./request.ts";
import type { Shard } from "./shard.ts";
import { outboxEpoch } from "./state.ts";
import { atOnce, refusalOf, resultOf } from "./verdict.ts";
import { write } from "./writes.ts";

export type FrameOutcome =
  | { readonly kind: "applied" | "replayed"; readonly fsn: number; readonly lsn: Lsn }
  | FrameRefusal;

/**
 * An outbox frame, record by record, in the one entry that moves its FSN on: each request is stored, found to be
 * stored before, or put into the quarantine stream with its code. Nothing is dropped.
 *
 * @throws ForebayError of `Journal.append`, nothing changed
 */
export function applyFrame(shard: Shard, frame: Frame): FrameOutcome {
  invariant((frame.flags & frameFlag.direct) === 0, "a direct frame has no FSN");
  const standing = judgeFsn(shard.state, frame);
  if (standing === "replayed") {
    const held = outboxEpoch(shard.state, frame.buffer, frame.epoch);
    return { kind: "replayed", fsn: frame.fsn, lsn: held?.lsn ?? lsn(0) };
  }
  if (standing !== "next") {
    return standing;
  }
  const draft = new FrameDraft(shard, frame);
  for (const [index, request] of frame.requests.entries()) {
    draft.take(request, index);
  }
  const ops = draft.finish();
  const bytes = shard.entryBytes(ops);
  if (bytes > limits.entryBytesMax) {
    const message = `the frame makes an entry of ${bytes} bytes, at most ${limits.entryBytesMax} are allowed`;
    return refuseFrame("frame_too_large", false, frame.fsn, message);
  }
  try {
    shard.store.admit(draft.bytes);
  } catch (error) {
    if (error instanceof ForebayError) {
      return refuseFrame(error.code, error.retryable, frame.fsn, error.message);
    }
    throw error;
  }
  return { kind: "applied", fsn: frame.fsn, lsn: shard.commitAll(ops) };
}

/**
 * A direct frame: each request is judged as its own POST, is its own entry, and gets its own result. A request the
 * journal refuses fails alone.
 */
export function applyDirect(
  shard: Shard,
  frame: Frame,
): { readonly results: readonly RequestResult[]; readonly lsn: Lsn } {
  let newest = atOnce;
  const results = frame.requests.map((request) => {
    try {
      const verdict = write(shard, writeOf(request));
      newest = verdict.lsn > newest ? verdict.lsn : newest;
      return resultOf(verdict);
    } catch (error) {
      if (error instanceof ForebayError) {
        return resultOf(refusalOf(error, atOnce));
      }
      throw error;
    }
  });
  return { results, lsn: newest };
}
