/** Fields of one connection (RFC 9110 §7.6.1), never passed on. */
const hopByHop: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** What the edge says itself or keeps to itself: the client's key, its cookies, its page's origin, who forwarded it. */
const notUpstream =
  /^(?:host|content-length|authorization|cookie|origin|accept-encoding|forebay-public-url|cf-.*|x-forwarded-.*|x-real-ip)$/;
/** CORS is the edge's to answer. */
const notDownstream = /^(?:access-control-.*|date|server)$/;

/** The fields that go to the origin; `own` are the edge's word, the last one. */
export function requestFields(
  from: Headers,
  key: string | null,
  own: Readonly<Record<string, string>>,
): Headers {
  const fields = passed(from, notUpstream);
  if (key !== null) {
    fields.set("authorization", `Bearer ${key}`);
  }
  for (const [name, value] of Object.entries(own)) {
    fields.set(name, value);
  }
  return fields;
}

/** The fields that go back to the client; a Location on the origin becomes one on this edge. */
export function responseFields(from: Headers, originUrl: string, edgeUrl: string): Headers {
  const fields = passed(from, notDownstream);
  const location = fields.get("location");
  if (location?.startsWith(`${originUrl}/`) === true) {
    fields.set("location", edgeUrl + location.slice(originUrl.length));
  }
  return fields;
}

function passed(from: Headers, kept: RegExp): Headers {
  const named = (from.get("connection") ?? "").split(",").map((name) => name.trim().toLowerCase());
  const fields = new Headers();
  for (const [name, value] of from) {
    if (!hopByHop.has(name) && !named.includes(name) && !kept.test(name)) {
      fields.append(name, value);
    }
  }
  return fields;
}
