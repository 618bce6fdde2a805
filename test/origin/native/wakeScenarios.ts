import { errno, pause, type TestLayer } from "./testAddon.ts";
import { sleep, UnderTest, within } from "./committerUnderTest.ts";

export type Native = "uring" | "threads";

/** Longer than any write here takes, also on a busy disk. */
const soonMs = 4000;

async function opened(layer: TestLayer, backend: Native, depth = 4): Promise<UnderTest> {
  const under = await new UnderTest(backend, layer, depth).start();
  // Until its threads sleep.
  await sleep(30);
  return under;
}

function handleOf(under: UnderTest): NonNullable<UnderTest["handle"]> {
  if (under.handle === undefined) {
    throw new Error("a native committer has a handle");
  }
  return under.handle;
}

/** Has two batches in flight, the first of which to come back fails. */
async function failOneOfTwo(layer: TestLayer, under: UnderTest, pauseUs: number): Promise<void> {
  // Both are handed over while the committer is on the way to its sleep, and so taken together.
  layer.testPause(handleOf(under), pause.beforeParked, 300_000);
  layer.testPause(handleOf(under), pause.write, 60_000);
  layer.testPause(handleOf(under), pause.afterFailure, pauseUs);
  under.submit(100);
  await under.durable(1, soonMs);
  layer.testFault(handleOf(under), 0, -errno.EIO);
  under.submit(100);
  under.submit(100);
  layer.testPause(handleOf(under), pause.beforeParked, 0);
}

/** What each wake is for; each fails when that wake is taken out. */
export const scenarios: Readonly<
  Record<string, (layer: TestLayer, backend: Native) => Promise<void>>
> = {
  async "a batch handed to a sleeping committer is committed"(layer, backend) {
    const under = await opened(layer, backend);
    under.submit(100);
    await under.durable(1, soonMs);
    await sleep(30);
    under.submit(100);
    await under.durable(2, soonMs);
    await under.close();
  },

  async "a failure is told while others are in flight"(layer, backend) {
    const under = await opened(layer, backend);
    await failOneOfTwo(layer, under, 2_800_000);
    await under.told(2500);
    if (under.failures.length !== 1) {
      throw new Error("the failure was not told");
    }
    await under.close();
  },

  async "after a failure the end of the last write is told"(layer, backend) {
    const under = await opened(layer, backend);
    await failOneOfTwo(layer, under, 500_000);
    await within(soonMs, under.committer.settled());
    await under.close();
  },

  async "a sleeping committer ends when it is closed"(layer, backend) {
    const under = await opened(layer, backend);
    under.submit(100);
    await under.durable(1, soonMs);
    await sleep(30);
    const from = performance.now();
    await under.close();
    const took = performance.now() - from;
    if (took > 500) {
      throw new Error(`closing took ${took} ms`);
    }
  },

  async "J3 a batch handed over between nothing to do and parked is committed"(layer, backend) {
    for (const step of [pause.beforeParked, pause.parked, pause.beforeSleep]) {
      // One write at a time: no other thread can come to the rescue.
      const under = await opened(layer, backend, 1);
      layer.testPause(handleOf(under), step, 40_000);
      for (let i = 1; i <= 4; i++) {
        under.submit(100);
        // Told while its thread is on the way to its sleep.
        await under.durable(i, soonMs);
        await sleep(i * 4);
      }
      await under.close();
    }
  },

  async "batches handed over one after another are written at once"(layer, backend) {
    const under = await opened(layer, backend);
    layer.testPause(handleOf(under), pause.write, 250_000);
    const from = performance.now();
    for (let i = 0; i < 4; i++) {
      under.submit(100);
      await sleep(5);
    }
    await under.durable(4, 2000);
    const took = performance.now() - from;
    if (took > 800) {
      throw new Error(`four writes of 250 ms at once took ${took} ms`);
    }
    await under.close();
  },
};
