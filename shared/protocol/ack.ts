import { ForebayError } from "../errors/mod.ts";

/** What an acknowledgement means (DESIGN, promise 1). `memory` is only ever an answer, never asked for. */
export type AckLevel = "none" | "edge" | "origin";

/**
 * The level asked for by `?ack=` or, without it, `Forebay-Ack`.
 *
 * @throws ForebayError `ack_unavailable` for any other value
 */
export function parseAck(
  query: string | null | undefined,
  headerValue: string | null | undefined,
  fallback: AckLevel,
): AckLevel {
  const asked = query ?? headerValue;
  if (asked === null || asked === undefined) {
    return fallback;
  }
  const level = asked.toLowerCase();
  if (level === "none" || level === "edge" || level === "origin") {
    return level;
  }
  throw new ForebayError(
    "ack_unavailable",
    `ack=${JSON.stringify(asked.slice(0, 64))} is not available; use none, edge or origin`,
  );
}
