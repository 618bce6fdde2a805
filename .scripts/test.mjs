/** Runs the tests, or those whose file names hold one of the given words. See the usage. */
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { buildDir, endWithUsage, run } from "./run.mjs";

const usage = `
Usage: npm test                      all tests
       npm test -- NAME...           the test files whose path holds one of the names
       npm test -- NAME -t PATTERN   of those, the tests whose title matches
       npm test -- --coverage        with coverage in .build/coverage

Other options go to vitest as they are. The last line is "N passed, N failed".
`;

/**
 * @typedef {{ status: string, assertionResults: { status: string }[] }} FileResult
 * @typedef {{ success: boolean, testResults: FileResult[] }} Report
 */

/**
 * A file that failed without a failed test in it (it did not load, a hook threw) counts as one
 * failure; so does a run that failed otherwise: nothing matched, or a promise rejected unhandled.
 * @param {Report} report
 * @param {number} code how vitest ended
 */
export function count(report, code) {
  const tests = report.testResults.flatMap((file) => file.assertionResults);
  const passed = tests.filter((test) => test.status === "passed").length;
  const failedTests = tests.filter((test) => test.status === "failed").length;
  const failedFiles = report.testResults.filter(
    (file) =>
      file.status === "failed" && file.assertionResults.every((test) => test.status !== "failed"),
  ).length;
  const failed = failedTests + failedFiles;
  const wholeRunFailed = failed === 0 && (code !== 0 || !report.success || passed === 0);
  return { passed, failed: wholeRunFailed ? 1 : failed, wholeRunFailed };
}

/** @param {string} path @returns {Report} an empty one when vitest did not come to write it */
function readReport(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return { success: false, testResults: [] };
  }
}

/**
 * @param {string[]} args for vitest
 * @returns {Promise<number>} exit code, 0 when at least one test ran and none failed
 */
export async function runTests(args) {
  mkdirSync(buildDir, { recursive: true });
  const reportPath = join(buildDir, `test-${process.pid}.json`);
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${reportPath}`];
  const config = ["run", "--config", "test/vitest.config.ts"];
  const code = await run("vitest", [...config, ...reporters, ...args]);
  const { passed, failed, wholeRunFailed } = count(readReport(reportPath), code);
  rmSync(reportPath, { force: true });
  if (wholeRunFailed) {
    console.log("The run failed outside of any test, or no test ran; see above.");
  }
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

if (process.argv[1]?.endsWith("test.mjs")) {
  const args = process.argv.slice(2);
  if (args.includes("--help")) {
    endWithUsage(usage);
  }
  process.exit(await runTests(args));
}
