import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Only the official suite, which is no test of `npm test` by itself: `runSide` starts it. */
export default defineConfig({
  root,
  cacheDir: `${root}.build/vite`,
  test: {
    include: ["test/conformance/official.suite.ts"],
    reporters: [`${root}test/conformance/reporter.ts`],
    pool: "forks",
    testTimeout: 30_000,
    // Some tests race a TTL of one or two seconds against the machine. What needs its second try is named.
    retry: 1,
  },
});
