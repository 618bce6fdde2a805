/** What a response's bytes are: of this stream generation, from here to there, with its end or not. */
export interface Representation {
  /** The stream's id: a path created again has a new one, so its ETags are new too. */
  readonly streamId: number;
  readonly start: string;
  readonly end: string;
  readonly closed: boolean;
}

/** The strong entity tag of a response, quotes included. Closing the stream changes it. */
export function formatEtag({ streamId, start, end, closed }: Representation): string {
  return `"${streamId}.${start}.${end}${closed ? ".closed" : ""}"`;
}

/**
 * True when `If-None-Match` makes a GET or HEAD a 304 (RFC 9110 §13.1.2): `*`, or a tag of the list that is the
 * same under weak comparison, because caches weaken tags when they recompress. A malformed rest of the list is
 * ignored: the full answer is always right.
 */
export function ifNoneMatch(headerValue: string, etag: string): boolean {
  if (headerValue.trim() === "*") {
    return true;
  }
  const opaque = etag.startsWith("W/") ? etag.slice(2) : etag;
  const next = /[\t ,]*(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")[\t ]*(?=,|$)/y;
  for (let m = next.exec(headerValue); m !== null; m = next.exec(headerValue)) {
    if (m[1] === opaque) {
      return true;
    }
  }
  return false;
}
