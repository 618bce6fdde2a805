import { type ErrorCode, invariant } from "../../shared/errors/mod.ts";
import type { Frame, Hello, Welcome } from "../../shared/frame/mod.ts";
import type { Lsn } from "../../shared/ids/mod.ts";
import { opKind } from "./entry.ts";
import type { Shard } from "./shard.ts";
import { outboxEpoch, type ShardState } from "./state.ts";

/** A frame that is not applied: NACK. Nothing was changed. */
export interface FrameRefusal {
  readonly kind: "refused";
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly expectedFsn: number;
  readonly message: string;
}

/**
 * HELLO. Written only when it tells something new. The epoch that said it last is the one whose new frames are taken:
 * boots of two epochs are not compared, since a clock that once ran ahead would shut out every later life of the outbox.
 * One that is alive and was overtaken says HELLO again; its FSNs are its own, so nothing is lost or applied twice by
 * that. `latestBoot` in the answer is the highest boot of an *applied*
 * frame, not that of the newest HELLO: a sender whose answer was lost and who says HELLO again must still learn
 * that its rows of newer boots are not here.
 */
export function hello(shard: Shard, from: Hello): { readonly welcome: Welcome; readonly lsn: Lsn } {
  const { buffer, epoch, boot } = from;
  const known = outboxEpoch(shard.state, buffer, epoch);
  const newest = shard.state.outboxes.get(buffer)?.epoch;
  if (known === undefined || boot > known.helloBoot || newest !== epoch) {
    shard.commit({ kind: opKind.hello, buffer, epoch, boot });
  }
  const held = known ?? outboxEpoch(shard.state, buffer, epoch);
  invariant(held !== undefined, "an outbox that said HELLO is known");
  const welcome = {
    journalId: shard.journal.id,
    buffer,
    durableFsn: held.fsn,
    latestBoot: held.frameBoot,
  };
  return { welcome, lsn: held.lsn };
}

/**
 * Where the frame's FSN stands: the next one, applied before, or refused.
 *
 * A frame at or below the high-water of a boot newer than any applied one is no replay, whatever its FSN: its row
 * was made by an outbox that was put back to older storage and counts again from there. HELLO tells it so.
 */
export function judgeFsn(state: ShardState, frame: Frame): "next" | "replayed" | FrameRefusal {
  const { buffer, fsn } = frame;
  const known = outboxEpoch(state, buffer, frame.epoch);
  const expected = (known?.fsn ?? 0) + 1;
  if (!Number.isSafeInteger(fsn) || fsn < 1) {
    return refuseFrame("bad_frame", false, expected, `FSN ${fsn}: they count from 1`);
  }
  if (known === undefined || frame.boot > known.helloBoot) {
    const seen = known === undefined ? "none" : `boot ${known.helloBoot}`;
    const message = `no HELLO of ${buffer}.${frame.epoch} boot ${frame.boot} was seen; the newest is ${seen}`;
    return refuseFrame("hello_required", true, expected, message);
  }
  if (fsn <= known.fsn) {
    if (frame.boot <= known.frameBoot) {
      return "replayed";
    }
    const message = `FSN ${fsn} of boot ${frame.boot} was assigned before, at boot ${known.frameBoot} or earlier`;
    return refuseFrame("stale_outbox_epoch", false, expected, message);
  }
  const newest = state.outboxes.get(buffer)?.epoch;
  if (newest !== frame.epoch) {
    const message = `outbox epoch ${frame.epoch} of ${buffer} was followed by ${newest}`;
    return refuseFrame("stale_outbox_epoch", false, expected, message);
  }
  if (fsn > expected) {
    return refuseFrame("frame_gap", true, expected, `FSN ${fsn} came where ${expected} is next`);
  }
  return "next";
}

export function refuseFrame(
  code: ErrorCode,
  retryable: boolean,
  expectedFsn: number,
  message: string,
): FrameRefusal {
  return { kind: "refused", code, retryable, expectedFsn, message };
}
