import { fileURLToPath } from "node:url";
import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Suites that start processes run long when they are soaked; see .scripts/soak.mjs. */
const soaking = process.env["FOREBAY_SOAK"] === "1";
const minutes = Number(process.env["FOREBAY_SOAK_MINUTES"] ?? "10");
const processTimeoutMs = soaking ? (minutes + 5) * 60_000 : 60_000;

// miniflare and wrangler ask nothing of the network, however vitest was started.
process.env["CLOUDFLARE_CF_FETCH_ENABLED"] ??= "false";
process.env["WRANGLER_SEND_METRICS"] ??= "false";
process.env["WRANGLER_HIDE_BANNER"] ??= "true";

export default defineConfig({
  root,
  // Nothing of a run stays in the tree except under .build.
  cacheDir: `${root}.build/vite`,
  test: {
    dangerouslyIgnoreUnhandledErrors: false,
    passWithNoTests: false,
    coverage: {
      provider: "v8",
      reportsDirectory: `${root}.build/coverage`,
      include: ["shared/**/*.ts", "edge/**/*.ts", "origin/**/*.ts"],
    },
    projects: [
      { extends: true, test: { name: "shared", include: ["test/shared/**/*.test.ts"] } },
      {
        extends: true,
        // Forks: the native addon and file descriptors do not go well with threads.
        test: { name: "origin", include: ["test/{origin,fuzz}/**/*.test.ts"], pool: "forks" },
      },
      {
        extends: true,
        plugins: [cloudflareTest({ wrangler: { configPath: `${root}wrangler.toml` } })],
        // A busy machine takes long to start a runtime, and none of these waits for time to pass.
        test: { name: "edge", include: ["test/edge/**/*.test.ts"], testTimeout: 20_000 },
      },
      {
        extends: true,
        test: {
          name: "e2e",
          include: ["test/{e2e,crash,conformance,support,chaos}/**/*.test.ts"],
          pool: "forks",
          // One file at a time, after everything else: they start servers and measure them.
          fileParallelism: false,
          sequence: { groupOrder: 1 },
          testTimeout: processTimeoutMs,
          hookTimeout: processTimeoutMs,
        },
      },
      {
        extends: true,
        test: { name: "repo", include: ["test/*.test.ts"], testTimeout: 60_000 },
      },
    ],
  },
});
