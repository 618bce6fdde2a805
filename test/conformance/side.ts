import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cleanEnvironment, startEdge, startOrigin } from "../e2e/harness.ts";
import type { Verdict } from "./reporter.ts";

/** Where the official suite knocks: at the origin itself, or at the Worker in front of it. */
export type Side = "origin" | "edge";
export const sides = ["origin", "edge"] as const;

export interface Outcome {
  readonly passed: number;
  /** Skipped tests included: a group that is left out does not raise the share. */
  readonly total: number;
  /** Names of those that did not pass. */
  readonly failed: readonly string[];
  /** Names of those that passed at the second try only. */
  readonly wavering: readonly string[];
}

/** The suite's long-poll tests expect an answer at about this time. */
const longPollMs = 500;
const root = fileURLToPath(new URL("../..", import.meta.url));

/** Starts fresh servers, runs the official suite against one side and stops them again. */
export async function runSide(side: Side): Promise<Outcome> {
  const origin = await startOrigin({ flags: ["--long-poll-ms", String(longPollMs)] });
  try {
    if (side === "origin") {
      return await runSuite(origin.url);
    }
    const edge = await startEdge({ originUrl: origin.url });
    try {
      return await runSuite(edge.url);
    } finally {
      await edge.stop();
    }
  } finally {
    await origin.stop();
  }
}

async function runSuite(baseUrl: string): Promise<Outcome> {
  const dir = mkdtempSync(join(tmpdir(), "forebay-conformance-"));
  try {
    const path = join(dir, "verdicts.json");
    const output = await vitest(baseUrl, path);
    const verdicts = readVerdicts(path, output);
    const failed = verdicts.filter((test) => !test.passed);
    return {
      passed: verdicts.length - failed.length,
      total: verdicts.length,
      failed: failed.map(({ name }) => name),
      wavering: verdicts.filter(({ wavered }) => wavered).map(({ name }) => name),
    };
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/** A vitest of its own, since the suite's tests are no tests of ours. Returns what it printed. */
async function vitest(baseUrl: string, verdictsPath: string): Promise<string> {
  const child = spawn(
    process.execPath,
    [
      join(root, "node_modules/vitest/vitest.mjs"),
      "run",
      "--config=test/conformance/vitest.config.ts",
    ],
    {
      cwd: root,
      stdio: ["ignore", "pipe", "pipe"],
      // Not the variables of the vitest that may have started us.
      env: {
        ...withoutVitest(cleanEnvironment()),
        FOREBAY_TEST_URL: baseUrl,
        FOREBAY_TEST_VERDICTS: verdictsPath,
      },
    },
  );
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  await once(child, "close");
  return output;
}

function withoutVitest(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("VITEST")));
}

function readVerdicts(path: string, output: string): Verdict[] {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (cause) {
    throw new Error(`the suite wrote no verdicts; it said:\n${output}`, { cause });
  }
}
