import { ForebayError } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import { framesPath } from "../../shared/protocol/mod.ts";

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

/** @throws ForebayError `config_invalid`: a mark is not a number of bytes, or soft is not below hard */
export function marksOf(env: OutboxEnv): Marks {
  const softBytes = bytesOf("OUTBOX_SOFT_BYTES", env.OUTBOX_SOFT_BYTES, limits.outboxSoftBytes);
  const hardBytes = bytesOf("OUTBOX_HARD_BYTES", env.OUTBOX_HARD_BYTES, limits.outboxHardBytes);
  if (softBytes >= hardBytes) {
    throw new ForebayError(
      "config_invalid",
      `OUTBOX_SOFT_BYTES (${softBytes}) must be below OUTBOX_HARD_BYTES (${hardBytes})`,
    );
  }
  return { softBytes, hardBytes };
}

function bytesOf(name: string, text: string | undefined, fallback: number): number {
  if (text === undefined || text === "") {
    return fallback;
  }
  if (!/^\d{1,15}$/.test(text)) {
    throw new ForebayError(
      "config_invalid",
      `${name} is ${JSON.stringify(text)}, it must be a number of bytes`,
    );
  }
  return Number(text);
}
