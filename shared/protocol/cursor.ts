/** Cursors count intervals since this instant (Durable Streams §8.1). */
const epochMs = 1_728_432_000_000; // 2024-10-09T00:00:00Z
const intervalMs = 20_000;
const jitterMsMax = 3_600_000;

/**
 * Stream-Cursor of a live answer: the number of the present interval, or, when the client's is not behind it, the
 * client's moved on by 1 s to 1 h of intervals. So a cursor never goes backwards and never repeats the client's,
 * which would make a shared cache answer a poll with itself.
 *
 * @param clientCursor the query's `cursor`; one that is not a number of at most 15 digits counts as none
 * @param random uniform in [0, 1)
 */
export function responseCursor(clientCursor: string | null, nowMs: number, random: number): string {
  const current = Math.max(0, Math.floor((nowMs - epochMs) / intervalMs));
  const given =
    clientCursor !== null && /^[0-9]{1,15}$/.test(clientCursor) ? Number(clientCursor) : -1;
  if (given < current) {
    return String(current);
  }
  return String(given + 1 + Math.floor((random * jitterMsMax) / intervalMs));
}
