/** One scenario of wakeScenarios.ts in a process of its own: `wakeChild.ts <addon> <uring | threads> <name>`. */
import { loadTestAddon } from "./testAddon.ts";
import { scenarios, type Native } from "./wakeScenarios.ts";

const [addon = "", backend = "", name = ""] = process.argv.slice(2);
const scenario = scenarios[name];
if (scenario === undefined) {
  throw new Error(`no scenario ${name}`);
}
await scenario(loadTestAddon(addon), backend as Native);
