import { expect, it } from "vitest";
import { explore, newExplored } from "./crashRun.ts";

const soaking = process.env["FOREBAY_SOAK"] === "1";
const wanted = soaking ? 1_000_000 : 10_000;
const budgetMs = soaking ? 3_600_000 : 30_000;
const seed = Number(process.env["FOREBAY_SEED"] ?? Date.now() % 2 ** 31);

it(
  `J19 J23 J25 J26 J28 J32 any power cut at any step keeps every acknowledged entry, once and whole (seed ${seed})`,
  async () => {
    const explored = newExplored();
    const until = performance.now() + budgetMs;
    let runs = 0;
    while (explored.distinct.size < wanted && performance.now() < until) {
      await explore(seed + runs, explored, 24);
      runs += 1;
    }
    const { images, distinct, reached } = explored;
    const rare = [...reached].filter(([, times]) => times < 100).length;
    console.log(
      `crash exploration: seed ${seed}, ${runs} runs, ${images} images, ${distinct.size} distinct, ${reached.size} pairs of calls, ${rare} of them reached under 100 times`,
    );
    expect(distinct.size).toBeGreaterThanOrEqual(2_000);
  },
  budgetMs + 20_000,
);

it("one seed run twice gives the same images in the same order", async () => {
  const digests: string[] = [];
  for (let i = 0; i < 2; i++) {
    const explored = newExplored();
    await explore(42, explored, 3);
    digests.push(explored.log.digest("hex"));
  }
  expect(digests[0]).toBe(digests[1]);
});
