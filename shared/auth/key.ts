import { utf8Bytes } from "../utf8/mod.ts";

/** The token of `Authorization: Bearer <key>` (RFC 6750 §2.1), or null when there is none. */
export function bearerKey(authorization: string | null): string | null {
  const m = /^bearer +([\x21-\x7e]+) *$/i.exec(authorization ?? "");
  return m?.[1] ?? null;
}

/**
 * The key a request presents: its bearer token, else `?key=`, for a beacon can set no header. A malformed
 * Authorization is not made up for by the query.
 */
export function requestKey(authorization: string | null, queryKey: string | null): string | null {
  return authorization === null ? queryKey : bearerKey(authorization);
}

/**
 * Whether the keys are the same, in a time that depends on the length of `given` only: neither on where they
 * differ nor on `expected`'s length. An empty `expected` matches nothing.
 */
export function keyMatches(given: string | null, expected: string): boolean {
  const a = utf8Bytes(given ?? "");
  const b = utf8Bytes(expected);
  let difference = a.length ^ b.length;
  for (let i = 0; i < a.length; i++) {
    difference |= (a[i] ?? 0) ^ (b[i % b.length] ?? 0);
  }
  return given !== null && b.length > 0 && difference === 0;
}
