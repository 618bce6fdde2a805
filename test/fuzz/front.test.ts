import { afterAll, beforeAll, expect, test } from "vitest";
import type { Seen } from "../origin/front/frontUnderTest.ts";
import { Choice } from "./choice.ts";
import { goesOn, seed, timeoutMs } from "./length.ts";
import { converse, frontSide, nodeSide, type Outcome, type Side } from "./sides.ts";
import { connectionBytes, pieces } from "./wire.ts";

interface Pair {
  readonly front: Side;
  readonly node: Side;
}

/** Busy at once: most of a connection's time is the kernel's. */
const pairCount = 8;
let pairs: Pair[] = [];
beforeAll(async () => {
  pairs = await Promise.all(
    Array.from({ length: pairCount }, async () => ({
      front: await frontSide(),
      node: await nodeSide(),
    })),
  );
});
afterAll(() => Promise.all(pairs.flatMap(({ front, node }) => [front.close(), node.close()])));

/** Who read it is the only thing that may differ. */
const asSeen = ({ seen }: Outcome): Seen[] => seen.map((each) => ({ ...each, by: "http" }));

const short = (cut: readonly string[]): string =>
  JSON.stringify(cut).replaceAll(/(.)\1{40,}/g, (run, c: string) => `${c}<${run.length} times>`);

interface Tally {
  cases: number;
  recognised: number;
  read: number;
  /** Cases in which the request behind all others was reached. */
  accepted: number;
}

async function compare({ front, node }: Pair, number: number, tally: Tally): Promise<void> {
  const choice = new Choice(seed + number);
  const bytes = connectionBytes(choice);
  const cut = pieces(choice, bytes);
  const late = choice.chance(0.3);
  const [ours, theirs] = await Promise.all([converse(front, cut, late), converse(node, cut, late)]);
  const shown = `seed ${seed}, case ${number}, ${late ? "late" : "at once"}: ${short(cut)}`;
  expect(asSeen(ours), shown).toEqual(asSeen(theirs));
  expect([ours.ended, theirs.ended], shown).toEqual([true, true]);
  // node:http cuts a connection whose next request is none, with whatever answers are due then; the recogniser does not.
  const own = ours.seen.filter((seen) => seen.by === "recognised" && seen.outcome !== "aborted");
  const answers = own.map((seen) => (seen.outcome === "whole" ? "200" : "413"));
  expect(ours.statuses.slice(0, own.length), shown).toEqual(answers);
  tally.cases++;
  tally.read += ours.seen.length;
  tally.recognised += ours.seen.filter((seen) => seen.by === "recognised").length;
  tally.accepted += ours.seen.at(-1)?.url === "/v1/stream/sentinel" ? 1 : 0;
}

test(
  "the recogniser and node:http see the same requests in the same bytes",
  async () => {
    console.log(`fuzz front: seed ${seed}`);
    const more = goesOn(2000);
    const tally: Tally = { cases: 0, recognised: 0, read: 0, accepted: 0 };
    let next = 0;
    await Promise.all(
      pairs.map(async (pair) => {
        while (more(next)) {
          await compare(pair, next++, tally);
        }
      }),
    );
    console.log(`fuzz front: ${JSON.stringify(tally)}`);
    // It would prove nothing if one of the two read nearly all, or if nearly all was accepted or refused.
    expect(tally.recognised).toBeGreaterThan(tally.read / 5);
    expect(tally.recognised).toBeLessThan((tally.read * 4) / 5);
    expect(tally.accepted).toBeGreaterThan(tally.cases / 10);
    expect(tally.accepted).toBeLessThan((tally.cases * 9) / 10);
  },
  timeoutMs,
);
