import { writeFileSync } from "node:fs";
import type { Reporter, TestCase } from "vitest/node";

/** One test of the official suite, as `runSide` reads it. */
export interface Verdict {
  readonly name: string;
  readonly passed: boolean;
  /** It passed, but not at the first try. */
  readonly wavered: boolean;
}

/** Writes the verdicts, as one JSON array, into the file that FOREBAY_TEST_VERDICTS names. */
export default class VerdictReporter implements Reporter {
  readonly #verdicts: Verdict[] = [];

  onTestCaseResult(test: TestCase): void {
    this.#verdicts.push({
      name: test.fullName.replaceAll(" > ", " › "),
      passed: test.result().state === "passed",
      wavered: test.diagnostic()?.flaky === true,
    });
  }

  onTestRunEnd(): void {
    const path = process.env["FOREBAY_TEST_VERDICTS"];
    if (path !== undefined) {
      writeFileSync(path, JSON.stringify(this.#verdicts));
    }
  }
}
