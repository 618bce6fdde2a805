/** How long a fuzz goes on, and from where: what .scripts/soak.mjs says, or a short run from a new seed. */
const soaking = process.env["FOREBAY_SOAK"] === "1";
const minutes = Number(process.env["FOREBAY_SOAK_MINUTES"] ?? "10");

export const seed = Number(process.env["FOREBAY_SEED"] ?? Math.floor(Math.random() * 2 ** 32));

/** Soaked by the clock, otherwise counted, so that a run on a slow machine tests the same. */
export function goesOn(casesUnsoaked: number): (done: number) => boolean {
  const until = performance.now() + minutes * 60_000;
  return (done) => (soaking ? performance.now() < until : done < casesUnsoaked);
}

export const timeoutMs = (soaking ? minutes + 2 : 2) * 60_000;

/** The same for a property of fast-check. */
export const runs = (
  casesUnsoaked: number,
): { seed: number; numRuns: number; interruptAfterTimeLimit?: number } =>
  soaking
    ? { seed: seed | 0, numRuns: 1e9, interruptAfterTimeLimit: minutes * 60_000 }
    : { seed: seed | 0, numRuns: casesUnsoaked };
