import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Only the official suite, which is no test of `npm test` by itself: `runSide` starts it. */
export default defineConfig({
  root,
  cacheDir: `${root}.build/vite`,
  test: { include: ["test/conformance/official.suite.ts"], testTimeout: 10_000, pool: "forks" },
});
