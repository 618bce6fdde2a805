/** Runs the official Durable Streams suite against origin and edge. See the usage. */
import { endWithUsage, run } from "./run.mjs";

const usage = `
Usage: npm run conformance                the official suite against the origin, then through the edge
       npm run conformance -- SIDE...     one of them: origin, edge

Each test that does not pass is named. The last two lines are "origin P/T" and "edge P/T". The exit
code is 1 when a count is below the one of test/conformance/floor.json.
`;

const sides = process.argv.slice(2);
if (sides.includes("--help")) {
  endWithUsage(usage);
}
const unknown = sides.find((side) => side !== "origin" && side !== "edge");
if (unknown !== undefined) {
  endWithUsage(usage, `conformance: unknown side ${JSON.stringify(unknown)}`);
}
process.exit(await run("node", ["test/conformance/main.ts", ...sides]));
