/** Name or address, `uri-host` of RFC 3986 §3.2.2 without what the future may bring, then a port; never empty. */
const shape =
  /^(?:(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})+|\[[0-9A-Fa-f:.]+\])(?::(\d{0,5}))?$/;
const portMax = 65_535;

/**
 * Whether a Host field, or the authority of a target in absolute form, names a host (RFC 9112 §3.2). The one rule for
 * requests of both parsers: nothing behind it looks at the field again.
 */
export function isHost(text: string): boolean {
  const found = shape.exec(text);
  return found !== null && Number(found[1] ?? 0) <= portMax;
}
