/** Over this long the rate is averaged, ms; older drains fade. */
const memoryMs = 30_000;

/** What is said when nothing drains, and the most that is ever said. */
const stalledSeconds = 60;
const retryAfterSecondsMax = 3600;

/**
 * Bytes a second that leave the outbox: an exponentially fading sum of what was trimmed over the fading time it was
 * trimmed in. In memory only: after a restart nothing is known, which counts as a stalled drain.
 */
export class DrainRate {
  #bytes = 0;
  /** The fading time behind `#bytes`, in ms; at most `memoryMs`. */
  #spanMs = 0;
  #at: number | null = null;

  /** `bytes` were trimmed at `now`. `sinceMs` is how long that took: the age of the POST that carried them. */
  trimmed(bytes: number, now: number, sinceMs: number): void {
    this.#fade(now, sinceMs);
    this.#bytes += bytes;
  }

  perSecond(now: number): number {
    if (this.#at === null) {
      return 0;
    }
    const factor = Math.exp(-(now - this.#at) / memoryMs);
    const spanMs = memoryMs - (memoryMs - this.#spanMs) * factor;
    // Less than a byte in the whole memory is nothing.
    const bytes = this.#bytes * factor;
    return bytes < 1 ? 0 : (bytes * 1000) / Math.max(spanMs, 1);
  }

  /** Whole seconds until `bytes` more have drained (F7): 60 when nothing drains. */
  secondsFor(bytes: number, now: number): number {
    const rate = this.perSecond(now);
    if (rate === 0) {
      return stalledSeconds;
    }
    return Math.min(retryAfterSecondsMax, Math.max(1, Math.ceil(bytes / rate)));
  }

  #fade(now: number, sinceMs: number): void {
    const elapsedMs = this.#at === null ? Math.max(1, sinceMs) : Math.max(0, now - this.#at);
    const factor = Math.exp(-elapsedMs / memoryMs);
    this.#bytes *= factor;
    this.#spanMs = memoryMs - (memoryMs - this.#spanMs) * factor;
    this.#at = now;
  }
}
