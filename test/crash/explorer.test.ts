import { expect, it } from "vitest";
import { damageRows } from "./explorer/damage.ts";
import { findingRows, newExplored, type Explored } from "./explorer/explored.ts";
import { explore } from "./explorer/life.ts";
import { pairsToReach } from "./explorer/steps.ts";

const soaking = process.env["FOREBAY_SOAK"] === "1";
const minutes = Number(process.env["FOREBAY_SOAK_MINUTES"] ?? "10");
const wanted = soaking ? 1_000_000 : 10_000;
/** Ten seconds on a quiet machine. Soaked it goes on until both the images and the minutes are reached. */
const msMin = soaking ? minutes * 60_000 : 0;
const msMax = soaking ? Math.max(minutes, 60) * 60_000 : 120_000;
const timesWanted = 100;
const imagesPerStep = soaking ? 64 : 24;
const rowsToReach = [...findingRows, ...damageRows];
const seed = Number(process.env["FOREBAY_SEED"] ?? Date.now() % 2 ** 31);

const rare = (counts: ReadonlyMap<string, number>, names: readonly string[]): string[] =>
  names
    .filter((name) => (counts.get(name) ?? 0) < timesWanted)
    .map((name) => `${name}: ${counts.get(name) ?? 0}`);

const isDone = ({ distinct, pairs, rows }: Explored): boolean =>
  distinct.size >= wanted &&
  rare(pairs, pairsToReach).length === 0 &&
  rare(rows, rowsToReach).length === 0;

it(
  `J19 J23 J25 J26 J28 J32 any power cut at any step keeps every acknowledged entry, once and whole (seed ${seed})`,
  async () => {
    const explored = newExplored();
    const from = performance.now();
    const elapsed = (): number => performance.now() - from;
    let toldAt = 0;
    let runs = 0;
    for (; elapsed() < msMax && (elapsed() < msMin || !isDone(explored)); runs++) {
      await explore(seed + runs, explored, imagesPerStep).catch((error: unknown) => {
        throw new Error(`run ${runs}, seed ${seed + runs}`, { cause: error });
      });
      if (soaking && elapsed() - toldAt > 10_000) {
        toldAt = elapsed();
        console.log(line(explored, runs, elapsed()));
      }
    }
    console.log(line(explored, runs, elapsed()));
    expect(rare(explored.pairs, pairsToReach)).toEqual([]);
    expect(rare(explored.rows, rowsToReach)).toEqual([]);
    expect(explored.distinct.size).toBeGreaterThanOrEqual(wanted);
  },
  msMax + 60_000,
);

function line(explored: Explored, runs: number, ms: number): string {
  const { images, distinct, pairs, rows } = explored;
  const left = [...rare(pairs, pairsToReach), ...rare(rows, rowsToReach)];
  const rate = Math.round((distinct.size / ms) * 1000);
  return `crash exploration: ${(ms / 1000).toFixed(0)} s, ${runs} runs, ${images} images, ${distinct.size} distinct (${rate}/s); under ${timesWanted} times: ${left.join(", ") || "nothing"}`;
}

it("one seed run twice gives the same images in the same order", async () => {
  const logs: string[] = [];
  for (let i = 0; i < 2; i++) {
    const explored = newExplored();
    await explore(42, explored, 3);
    logs.push(explored.log.digest("hex"));
  }
  expect(logs[0]).toBe(logs[1]);
});
