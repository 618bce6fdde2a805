/** Edits (insert, delete, replace, swap of neighbours) between two words; optimal string alignment. */
function distance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let best = Math.min(
        (last[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (last[j - 1] ?? 0) + (same ? 0 : 1),
      );
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, (beforeLast[j - 2] ?? 0) + 1);
      }
      row.push(best);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}

const folded = (word: string): string => word.toLowerCase().replaceAll(/[-_]/g, "");

/**
 * The known word that `word` was probably meant to be, not counting case, `-` and `_`: the nearest by edits with
 * no more than a third of it wrong, else one that `word` is the beginning of.
 */
export function suggest(word: string, known: readonly string[]): string | undefined {
  const wanted = folded(word);
  let best: { readonly name: string; readonly cost: number } | undefined;
  for (const name of known) {
    const cost = costOf(wanted, folded(name));
    if (cost < (best?.cost ?? Infinity)) {
      best = { name, cost };
    }
  }
  return best?.name;
}

function costOf(wanted: string, candidate: string): number {
  const edits = distance(wanted, candidate);
  if (edits <= Math.max(1, Math.floor(candidate.length / 3))) {
    return edits;
  }
  return wanted.length >= 3 && candidate.startsWith(wanted) ? candidate.length : Infinity;
}

/** `; did you mean x?`, or nothing. */
export function didYouMean(word: string, known: readonly string[]): string {
  const name = suggest(word, known);
  return name === undefined ? "" : `; did you mean ${name}?`;
}
