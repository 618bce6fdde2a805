import { limits } from "../../shared/limits.ts";

/**
 * How long a request that finds a flight under way may wait for company, in ms, from how long flights take:
 * a quarter of a flight, so waiting never dominates, between `flushAgeMs` and `flushAgeMsMax`.
 */
export function lingerFor(flightMs: number): number {
  return Math.min(Math.max(flightMs / 4, limits.flushAgeMs), limits.flushAgeMsMax);
}

/** Exponential mean of the flights' times, weight 1/8: one slow flight does not set the pace. */
export function smoothed(mean: number, sample: number): number {
  return mean + (sample - mean) / 8;
}
