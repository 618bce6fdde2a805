import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { parse } from "smol-toml";
import { expect, test } from "vitest";

const require = createRequire(import.meta.url);
const dayMs = 24 * 3600 * 1000;

/** Local workerd refuses a later date at start, `wrangler deploy --dry-run` does not notice. */
test("the compatibility date is at most 7 days past workerd's own", () => {
  const config = parse(readFileSync(new URL("../wrangler.toml", import.meta.url), "utf8"));
  const workerd: { compatibilityDate: string } = require("workerd");
  expect(workerd.compatibilityDate).toMatch(/^\d{4}-\d\d-\d\d$/);
  expect(config["compatibility_date"]).toMatch(/^\d{4}-\d\d-\d\d$/);
  const ahead =
    Date.parse(String(config["compatibility_date"])) - Date.parse(workerd.compatibilityDate);
  expect(ahead / dayMs).toBeLessThanOrEqual(7);
});
