import { limits } from "../../shared/limits.ts";
import { framesPath } from "../../shared/protocol/mod.ts";
import { refusal } from "./refusal.ts";
import type { OutboxRefusal } from "./types.ts";

/** The variables and secrets the outbox reads. */
export interface OutboxEnv {
  readonly ORIGIN_URL: string;
  readonly FOREBAY_KEY?: string;
  /** The marks of F7 in bytes; `limits.outboxSoftBytes` and `limits.outboxHardBytes` when absent. */
  readonly OUTBOX_SOFT_BYTES?: string;
  readonly OUTBOX_HARD_BYTES?: string;
}

/** Where frames are posted to, and with which key. */
export interface FramesLink {
  readonly url: string;
  readonly key: string | null;
}

/** A URL that makes no sense fails like an origin that is down: what is kept stays until it is mended. */
export function framesLink(env: OutboxEnv): FramesLink {
  const key = env.FOREBAY_KEY ?? "";
  return { url: env.ORIGIN_URL.replace(/\/+$/, "") + framesPath, key: key === "" ? null : key };
}

export interface Marks {
  readonly softBytes: number;
  readonly hardBytes: number;
}

/** The marks, or why there are none: with those no append is taken, while what is kept goes on draining. */
export function marksOf(env: OutboxEnv): Marks | OutboxRefusal {
  const softBytes = bytesOf(env.OUTBOX_SOFT_BYTES, limits.outboxSoftBytes);
  const hardBytes = bytesOf(env.OUTBOX_HARD_BYTES, limits.outboxHardBytes);
  if (softBytes < hardBytes) {
    return { softBytes, hardBytes };
  }
  const { OUTBOX_SOFT_BYTES: soft, OUTBOX_HARD_BYTES: hard } = env;
  return refusal(
    "config_invalid",
    `OUTBOX_SOFT_BYTES (${soft ?? softBytes}) and OUTBOX_HARD_BYTES (${hard ?? hardBytes}) must be numbers of bytes, the first below the second`,
  );
}

/** NaN, which is below nothing, for what is not a number of bytes. */
function bytesOf(text: string | undefined, fallback: number): number {
  if (text === undefined || text === "") {
    return fallback;
  }
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
}
