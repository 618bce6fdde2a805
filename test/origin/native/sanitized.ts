/** The committer through everything that touches memory; run under AddressSanitizer: `sanitized.ts <addon>`. */
import { UnderTest, areaBytes, sleep } from "./committerUnderTest.ts";
import { errno, loadTestAddon } from "./testAddon.ts";
import { scenarios } from "./wakeScenarios.ts";

const [addon = ""] = process.argv.slice(2);
const layer = loadTestAddon(addon);

for (const backend of ["uring", "threads"] as const) {
  for (let life = 0; life < 3; life++) {
    const under = await new UnderTest(backend, layer).start();
    for (let i = 1; i <= 30; i++) {
      while (under.committer.inFlight >= under.committer.inFlightMax) {
        await under.told();
      }
      under.submit([0, 1, 4024, 4025, areaBytes - 72, 3 * areaBytes][i % 6] ?? 0);
    }
    await under.durable(30, 20_000);
    if (life > 0 && under.handle !== undefined) {
      layer.testFault(under.handle, 0, life === 1 ? -errno.EIO : 4096);
      under.submit(30_000);
      await under.told(20_000);
    }
    await under.close();
    globalThis.gc?.();
    await sleep(20);
  }
  for (const [name, run] of Object.entries(scenarios)) {
    if (!name.includes("at once")) {
      await run(layer, backend);
    }
  }
}
// The last one is left open: the end of the process has to stop it.
const left = await new UnderTest("threads", layer).start();
left.submit(100);
console.log("sound");
