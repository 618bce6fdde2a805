import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { buildDir } from "../../../.scripts/run.mjs";
import { openJournal } from "../../../origin/journal/mod.ts";
import { nativeLayer } from "../../../origin/native/mod.ts";
import { clock, random } from "../../../origin/ports/mod.ts";
import { realDisk } from "../../../origin/storage/mod.ts";
import { KiB } from "./harness.ts";

const dir = mkdtempSync(join(buildDir, "idle-"));
afterAll(() => {
  rmSync(dir, { recursive: true, force: true });
});

/** How often each thread that commits was given the processor, by its number. */
function runsOfCommitters(): ReadonlyMap<string, number> {
  const task = "/proc/self/task";
  const threads = readdirSync(task).filter((id) =>
    readFileSync(join(task, id, "comm"), "utf8").startsWith("forebay-"),
  );
  return new Map(
    threads.map((id) => [
      id,
      Number(
        readFileSync(join(task, id, "schedstat"), "utf8")
          .trim()
          .split(" ")[2],
      ),
    ]),
  );
}

it.skipIf(nativeLayer() === undefined).each([
  ["uring", 1],
  ["threads", 4],
] as const)("J1 an idle journal with storage = %s wakes nobody", async (storage, threads) => {
  const events = { onDurable: () => undefined, onFailed: () => undefined };
  const sizes = { segmentBytes: 64 * KiB, budgetBytes: 1024 * KiB };
  const journal = await openJournal(
    { dir: join(dir, storage), disk: realDisk, clock, random, storage, events, ...sizes },
    () => undefined,
  );
  for (let i = 0; i < 8; i++) {
    journal.append([new Uint8Array(100)]);
    await journal.flush();
  }
  const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
  await pause(200);
  const before = runsOfCommitters();
  expect(before.size).toBe(threads);
  await pause(2000);
  expect(runsOfCommitters()).toEqual(before);
  await journal.close();
  expect(runsOfCommitters().size).toBe(0);
});
