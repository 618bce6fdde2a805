/** Median and quartiles of a sample, by linear interpolation between order statistics. */
export interface Quartiles {
  readonly q1: number;
  readonly median: number;
  readonly q3: number;
}

export function quartiles(sample: readonly number[]): Quartiles {
  const sorted = [...sample].sort((a, b) => a - b);
  const at = (p: number): number => {
    const x = (sorted.length - 1) * p;
    const low = sorted[Math.floor(x)] ?? Number.NaN;
    const high = sorted[Math.ceil(x)] ?? Number.NaN;
    return low + (high - low) * (x - Math.floor(x));
  };
  return { q1: at(0.25), median: at(0.5), q3: at(0.75) };
}

/** Ratios round by round: sides of one round ran next to each other, so drift cancels. */
export function pairedRatio(ours: readonly number[], theirs: readonly number[]): Quartiles {
  return quartiles(ours.map((value, round) => value / (theirs[round] ?? Number.NaN)));
}

/** Three significant digits, as a number. */
export const rounded = (x: number): number => Number(x.toPrecision(3));
