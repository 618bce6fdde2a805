/** An oldest frame that waits longer than this is a stalled drain (F7, F14): it refuses no write, and is told. */
const staleMs = 60_000;

export interface Health {
  readonly state: "ok" | "degraded";
  readonly reason: string | null;
}

export function healthOf(of: {
  readonly oldestUnackedMs: number;
  readonly fault: string | null;
  readonly lastError: string | null;
}): Health {
  const { oldestUnackedMs, fault, lastError } = of;
  if (fault !== null) {
    return { state: "degraded", reason: `the outbox has a fault of its own: ${fault}` };
  }
  if (oldestUnackedMs <= staleMs) {
    return { state: "ok", reason: null };
  }
  const why = lastError === null ? "" : `; the last error: ${lastError}`;
  return {
    state: "degraded",
    reason: `the oldest frame has waited ${Math.round(oldestUnackedMs / 1000)} s for the origin${why}`,
  };
}
