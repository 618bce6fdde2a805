import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "./tidy/tree.ts";

/** The steps of `npm run check` that are not tests themselves, so that `npm test` covers them. */
test.each(["format", "lint", "types", "bundle"])("check: %s", (step) => {
  const args = [join(root, ".scripts/check.mjs"), step];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect(`${stderr}${stdout}`).toMatch(/check: all well\n$/);
});
