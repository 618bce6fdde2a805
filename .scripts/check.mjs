/** Everything that can be said of the tree without running it. See the usage. */
import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { buildDir, capture, endWithUsage, root } from "./run.mjs";

const usage = `
Usage: npm run check              all steps
       npm run check -- STEP...   some: format, lint, types, tidy, bundle

One line per step; a failed one shows what the tool said, and the exit code is 1.
`;

/** Of the Worker's JavaScript as wrangler bundles it. Raise it only for a reason worth the bytes. */
const bundleBytesMax = 300 * 1024;

const folders = ["edge", "origin", "shared", "test", ".scripts"];

/** @typedef {{ code: number, output: string, note?: string }} Outcome */

/** @param {readonly string[]} args @returns {Promise<Outcome>} */
const lint = (args) => capture("oxlint", [...args, ...folders]);

/** @returns {Promise<Outcome>} */
async function bundle() {
  if (!existsSync(join(root, "edge/worker.ts"))) {
    return { code: 1, output: "edge/worker.ts is missing" };
  }
  const outDir = join(buildDir, "edge-bundle");
  rmSync(outDir, { recursive: true, force: true });
  const result = await capture("wrangler", ["deploy", "--dry-run", "--outdir", outDir]);
  if (result.code !== 0) {
    return result;
  }
  const bytes = readdirSync(outDir)
    .filter((name) => /\.m?js$/.test(name))
    .reduce((sum, name) => sum + statSync(join(outDir, name)).size, 0);
  const note = `${(bytes / 1024).toFixed(0)} of ${bundleBytesMax / 1024} KiB`;
  if (bytes === 0 || bytes > bundleBytesMax) {
    return { code: 1, output: `the Worker's bundle has ${bytes} bytes: ${note}` };
  }
  return { ...result, note };
}

/** @type {Record<string, () => Promise<Outcome>>} */
const steps = {
  format: () => capture("oxfmt", ["--check", ...folders, "package.json", "tsconfig.json"]),
  lint: () => lint(["--type-aware", "--deny-warnings", "--report-unused-disable-directives"]),
  // Forced: an incremental build was seen to repeat an error that was no longer there.
  types: () => capture("tsc", ["-b", "--force"]),
  tidy: () => capture("vitest", ["run", "--config", "test/vitest.config.ts", "test/tidy.test.ts"]),
  bundle,
};

/** @param {string} name @returns {Promise<boolean>} */
async function runStep(name) {
  const startedAt = performance.now();
  const outcome = await /** @type {() => Promise<Outcome>} */ (steps[name])();
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  const verdict = outcome.code === 0 ? "ok" : "FAILED";
  const note = outcome.note === undefined ? "" : `, ${outcome.note}`;
  console.log(`check: ${name.padEnd(6)} ${verdict} (${seconds} s${note})`);
  if (outcome.code !== 0) {
    console.log(outcome.output.trimEnd().replaceAll(/^/gm, "  "));
  }
  return outcome.code === 0;
}

const names = process.argv.slice(2);
if (names.includes("--help")) {
  endWithUsage(usage);
}
const unknown = names.find((name) => !(name in steps));
if (unknown !== undefined) {
  endWithUsage(usage, `check: unknown step ${JSON.stringify(unknown)}`);
}
const failed = [];
for (const name of names.length > 0 ? names : Object.keys(steps)) {
  if (!(await runStep(name))) {
    failed.push(name);
  }
}
console.log(failed.length === 0 ? "check: all well" : `check: failed: ${failed.join(", ")}`);
process.exit(failed.length === 0 ? 0 : 1);
