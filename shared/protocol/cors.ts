import { ForebayError } from "../errors/mod.ts";
import { header } from "./headers.ts";

/** Web origins that may read answers: exact ones, and, if `loopback`, this machine's at any port. */
export interface AllowedOrigins {
  readonly loopback: boolean;
  readonly exact: ReadonlySet<string>;
}

/** Without configuration: pages served from this machine. */
export const loopbackOrigins: AllowedOrigins = { loopback: true, exact: new Set() };

const loopback = /^https?:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?$/;
/** An origin as browsers serialise it: lower case, no path, no slash at the end. */
const originShape = /^[a-z][a-z0-9+.-]*:\/\/(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?$/;

/**
 * The configuration's list: exact origins, or the word `loopback`. `*` is not taken: the key in a page must not
 * work from every other page.
 *
 * @throws ForebayError `config_invalid`
 */
export function parseAllowedOrigins(entries: readonly string[]): AllowedOrigins {
  const exact = entries.filter((entry) => entry !== "loopback");
  for (const entry of exact) {
    if (!originShape.test(entry)) {
      throw new ForebayError(
        "config_invalid",
        `${JSON.stringify(entry)} is not an exact web origin like "https://example.com", nor "loopback"`,
      );
    }
  }
  return { loopback: exact.length < entries.length, exact: new Set(exact) };
}

export function isAllowedOrigin(origin: string, allowed: AllowedOrigins): boolean {
  return allowed.exact.has(origin) || (allowed.loopback && loopback.test(origin));
}

const vary = { vary: "Origin" } as const;

const exposed = [
  header.nextOffset,
  header.upToDate,
  header.cursor,
  header.closed,
  header.ttl,
  header.expiresAt,
  header.sseDataEncoding,
  header.producerEpoch,
  header.producerSeq,
  header.producerExpectedSeq,
  header.producerReceivedSeq,
  header.ack,
  header.position,
  "etag",
  "location",
  "retry-after",
].join(", ");

const preflight = {
  "access-control-allow-methods": "GET, HEAD, POST, PUT, DELETE, OPTIONS",
  "access-control-allow-headers": [
    "content-type",
    "authorization",
    "if-none-match",
    header.seq,
    header.ttl,
    header.expiresAt,
    header.closed,
    header.forkedFrom,
    header.forkOffset,
    header.forkSubOffset,
    header.expectedOffset,
    header.producerId,
    header.producerEpoch,
    header.producerSeq,
    header.ack,
    header.batchId,
  ].join(", "),
  "access-control-max-age": "7200",
} as const;

/**
 * CORS fields of an answer: the exact origin echoed, never `*`, no credentials. `Vary: Origin` is there without an
 * Origin too, or a cache would serve that answer to a page.
 *
 * @returns null when the page's origin is not allowed: then answer `origin_not_allowed`
 */
export function corsHeaders(
  origin: string | null,
  allowed: AllowedOrigins,
): Record<string, string> | null {
  if (origin === null) {
    return { ...vary };
  }
  if (!isAllowedOrigin(origin, allowed)) {
    return null;
  }
  return {
    ...vary,
    "access-control-allow-origin": origin,
    "access-control-expose-headers": exposed,
  };
}

/**
 * Fields of the answer to an OPTIONS request, whoever asks. What lets the browser go on is
 * `Access-Control-Allow-Origin`, which only an allowed origin gets.
 */
export function preflightHeaders(
  origin: string | null,
  allowed: AllowedOrigins,
): Record<string, string> {
  return { ...preflight, ...(corsHeaders(origin, allowed) ?? vary) };
}
