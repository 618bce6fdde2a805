import { floor } from "./floor.ts";
import { runSide, sides, type Outcome, type Side } from "./side.ts";

/**
 * Runs the official suite against the sides asked for (both without arguments), names what failed, and ends with
 * one line `<side> <passed>/<total>` each. Exit code 1 below the floor.
 */
const asked = process.argv.slice(2);
const wanted = sides.filter((side) => asked.length === 0 || asked.includes(side));
const outcomes: [Side, Outcome][] = [];
for (const side of wanted) {
  const outcome = await runSide(side);
  outcomes.push([side, outcome]);
  for (const name of outcome.wavering) {
    console.log(`${side}: passed at the second try only: ${name}`);
  }
  for (const name of outcome.failed) {
    console.log(`${side}: failed: ${name}`);
  }
}
let below = false;
for (const [side, { passed, total }] of outcomes) {
  if (passed < floor.passed[side] || total !== floor.total) {
    below = true;
    console.log(`${side}: below the floor of ${floor.passed[side]}/${floor.total}`);
  }
}
for (const [side, { passed, total }] of outcomes) {
  console.log(`${side} ${passed}/${total}`);
}
process.exit(below ? 1 : 0);
