import { ForebayError } from "../errors/mod.ts";
import { parseDecimal } from "./integer.ts";

/** An instant as it was written, with its time in ms since the Unix epoch. */
export interface Instant {
  readonly text: string;
  readonly ms: number;
}

/** How long a stream lives: since its last use, or until an instant, or (both null) for good. */
export interface Lifetime {
  readonly ttlSeconds: number | null;
  readonly expiresAt: Instant | null;
}

/** Some 31,000 years: now + TTL stays within what a Date can hold. */
const ttlSecondsMax = 1e12;

/**
 * @param ttl the value of Stream-TTL
 * @param expiresAt the value of Stream-Expires-At
 * @throws ForebayError `bad_header` for both together or an invalid one
 */
export function parseLifetime(
  ttl: string | null | undefined,
  expiresAt: string | null | undefined,
): Lifetime {
  if (typeof ttl === "string" && typeof expiresAt === "string") {
    throw new ForebayError("bad_header", "Stream-TTL and Stream-Expires-At exclude each other");
  }
  return {
    ttlSeconds: typeof ttl === "string" ? parseTtl(ttl) : null,
    expiresAt: typeof expiresAt === "string" ? parseExpiresAt(expiresAt) : null,
  };
}

/**
 * Stream-TTL in seconds: a plain decimal integer (Durable Streams §5.1).
 *
 * @throws ForebayError `bad_header`
 */
export function parseTtl(text: string): number {
  const seconds = parseDecimal(text);
  if (seconds === undefined || seconds > ttlSecondsMax) {
    throw new ForebayError(
      "bad_header",
      `Stream-TTL is ${JSON.stringify(text.slice(0, 64))}, not a number of seconds from 0 to ${ttlSecondsMax}`,
    );
  }
  return seconds;
}

const dateTime =
  /^(\d{4})-(\d{2})-(\d{2})T([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(\.\d{1,9})?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/i;

/**
 * Stream-Expires-At: a `date-time` of RFC 3339 §5.6; a day that is not in the calendar is refused.
 *
 * @throws ForebayError `bad_header`
 */
export function parseExpiresAt(text: string): Instant {
  const m = dateTime.exec(text);
  const ms = m === null ? undefined : instantMs(m);
  if (ms === undefined) {
    throw new ForebayError(
      "bad_header",
      `Stream-Expires-At is ${JSON.stringify(text.slice(0, 64))}, not an RFC 3339 time like 2030-01-31T12:00:00Z`,
    );
  }
  return { text, ms };
}

function instantMs(m: RegExpExecArray): number | undefined {
  const field = (i: number): number => Number(m[i] ?? 0);
  const day = new Date(0);
  day.setUTCFullYear(field(1), field(2) - 1, field(3));
  if (day.getUTCMonth() !== field(2) - 1 || day.getUTCDate() !== field(3)) {
    return undefined;
  }
  const offsetMinutes = (field(9) * 60 + field(10)) * (m[8] === "-" ? -1 : 1);
  const minutes = field(4) * 60 + field(5) - offsetMinutes;
  return day.getTime() + minutes * 60_000 + field(6) * 1000 + Math.floor(field(7) * 1000);
}
