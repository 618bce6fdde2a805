/** So many runs of one tier are made one of the next. */
const fanIn = 4;
const tierBytes = 1024 * 1024;
/** What is larger is left as it is: a merge takes its inputs' space once more while it is made. */
const mergedBytesMax = 8 * 1024 * 1024 * 1024;

/** Inputs of a merge: the runs from `from` on, before `to`. */
export interface MergePlan {
  readonly from: number;
  readonly to: number;
}

/**
 * The runs to be merged next, or null. Only neighbours are merged, so that of two runs the later one still holds later
 * records. The smallest tier comes first; runs of smaller tiers that lie between are taken along.
 *
 * @param bytes sizes of the live runs, oldest first; Infinity for one that may not be merged
 */
export function mergeDue(bytes: readonly number[]): MergePlan | null {
  const tiers = bytes.map(tierOf);
  const highest = Math.max(0, ...tiers.filter(Number.isFinite));
  for (let tier = 0; tier <= highest; tier++) {
    const plan = stretch(tiers, bytes, tier);
    if (plan !== null) {
      return plan;
    }
  }
  return null;
}

function tierOf(bytes: number): number {
  if (bytes === Infinity) {
    return Infinity;
  }
  let tier = 0;
  for (let rest = bytes; rest > tierBytes; rest /= fanIn) {
    tier += 1;
  }
  return tier;
}

/** From the first to the last of at least `fanIn` runs of this tier, with none of a higher one between them. */
function stretch(
  tiers: readonly number[],
  bytes: readonly number[],
  tier: number,
): MergePlan | null {
  let from = 0;
  let count = 0;
  let sum = 0;
  for (const [at, here] of tiers.entries()) {
    const size = bytes[at] ?? 0;
    if (here > tier || sum + size > mergedBytesMax) {
      count = 0;
      sum = 0;
    }
    if (here > tier || (here < tier && count === 0)) {
      continue;
    }
    from = count === 0 ? at : from;
    count += here === tier ? 1 : 0;
    sum += size;
    if (count === fanIn) {
      return { from, to: at + 1 };
    }
  }
  return null;
}
