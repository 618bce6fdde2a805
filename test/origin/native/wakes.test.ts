import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildDir, root } from "../../../.scripts/run.mjs";
import { cleanUp, scratchVariable } from "./committerUnderTest.ts";
import { buildTestAddon, loadTestAddon } from "./testAddon.ts";
import { scenarios, type Native } from "./wakeScenarios.ts";

const child = fileURLToPath(new URL("wakeChild.ts", import.meta.url));
const addon = await buildTestAddon();
const sleeping = "a batch handed to a sleeping committer is committed";
const atOnce = "batches handed over one after another are written at once";

/** Each single wake, what takes it out of the build, and the scenario that must notice. */
const mutations: readonly { without: string; backends: readonly Native[]; noticedBy: string }[] = [
  { without: "WAKE_DOORBELL", backends: ["uring", "threads"], noticedBy: sleeping },
  { without: "WAKE_DURABLE", backends: ["uring", "threads"], noticedBy: sleeping },
  {
    without: "WAKE_FAILED",
    backends: ["uring", "threads"],
    noticedBy: "a failure is told while others are in flight",
  },
  {
    without: "WAKE_QUIET",
    backends: ["uring", "threads"],
    noticedBy: "after a failure the end of the last write is told",
  },
  {
    without: "WAKE_STOP",
    backends: ["uring", "threads"],
    noticedBy: "a sleeping committer ends when it is closed",
  },
  {
    without: "WAKE_STOP_NEXT",
    backends: ["threads"],
    noticedBy: "a sleeping committer ends when it is closed",
  },
  {
    without: "REREAD",
    backends: ["uring", "threads"],
    noticedBy: "J3 a batch handed over between nothing to do and parked is committed",
  },
  { without: "WAKE_NEXT", backends: ["threads"], noticedBy: atOnce },
];

const scratch = mkdtempSync(join(buildDir, "wakes-"));

afterAll(() => {
  cleanUp();
  rmSync(scratch, { recursive: true, force: true });
});

/** How the scenario ended in a process of its own, which may hang or abort without harm. */
function outcome(path: string, backend: Native, name: string): Promise<string> {
  return new Promise((resolve) => {
    const env = { ...process.env, [scratchVariable]: scratch };
    const options = { env, timeout: 6000, killSignal: "SIGKILL" as const };
    execFile(process.execPath, [child, path, backend, name], options, (error, _out, stderr) => {
      resolve(error === null ? "passed" : `failed: ${stderr}`);
    });
  });
}

/** A wake that is missing hangs a run unless another one happens to come just then: on a busy machine one run may get by. */
async function oneOfThree(path: string, backend: Native, name: string): Promise<string> {
  let ended = "";
  for (let run = 0; run < 3 && !ended.startsWith("failed"); run++) {
    ended = await outcome(path, backend, name);
  }
  return ended;
}

describe.skipIf(addon === undefined).each(["uring", "threads"] as const)("%s", (backend) => {
  const names = Object.keys(scenarios).filter((name) => backend === "threads" || name !== atOnce);
  it.each(names)("J4 %s", async (name) => {
    await expect(scenarios[name]?.(loadTestAddon(addon ?? ""), backend)).resolves.toBeUndefined();
  });
});

const byName = (a: string | undefined, b: string | undefined): number =>
  (a ?? "") < (b ?? "") ? -1 : 1;

/** Compiled once for all, before anything is timed. */
const mutated = new Map<string, string>();

describe.skipIf(addon === undefined)("J5 without a single wake its scenario fails", () => {
  const cases = mutations.flatMap(({ without, backends, noticedBy }) =>
    backends.map((backend) => ({ without, backend, noticedBy })),
  );
  beforeAll(async () => {
    for (const { without } of mutations) {
      mutated.set(without, (await buildTestAddon([`-DWITHOUT_${without}`])) ?? "");
    }
  }, 60_000);

  it.concurrent.each(cases)(
    "$without, $backend",
    async ({ without, backend, noticedBy }) => {
      expect(await oneOfThree(mutated.get(without) ?? "", backend, noticedBy)).toMatch(/^failed: /);
    },
    60_000,
  );

  it("J35 the notes name every wake, and the functions they name are there", () => {
    const dir = join(root, "origin/native");
    const rows = [
      ...readFileSync(join(dir, "DECISIONS.md"), "utf8").matchAll(
        /^\| `WITHOUT_(\w+)` \| `(\w+)`/gm,
      ),
    ];
    expect(rows.map(([, define]) => define).toSorted(byName)).toEqual(
      mutations.map(({ without }) => without).toSorted(byName),
    );
    const code = readdirSync(dir)
      .filter((name) => name.endsWith(".c"))
      .map((name) => readFileSync(join(dir, name), "utf8"));
    for (const [, define, symbol] of rows) {
      // The define stands within the function that the row names.
      const body = new RegExp(`^\\S[^\\n]*\\b${symbol}\\([^;]*?\\{\\n[^]*?^\\}`, "gm");
      const found = code.flatMap((text) => [...text.matchAll(body)].map(([match]) => match));
      expect(found.some((text) => text.includes(`WITHOUT_${define}`))).toBe(true);
    }
  });

  it("every wake that can be taken out is in this list", () => {
    const dir = join(root, "origin/native");
    const sources = readdirSync(dir).filter((name) => name.endsWith(".c"));
    const found = sources.flatMap((name) => [
      ...readFileSync(join(dir, name), "utf8").matchAll(/WITHOUT_(\w+)/g),
    ]);
    const named = new Set(found.map(([, name]) => name));
    expect([...named].toSorted(byName)).toEqual(
      mutations.map(({ without }) => without).toSorted(byName),
    );
  });
});
