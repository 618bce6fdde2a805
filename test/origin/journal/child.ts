/**
 * A process of its own with a journal on the real disk: `child.ts <write | hold | idle> <data directory> <ledger>`.
 * `write` appends until it is killed and notes in the ledger what was acknowledged.
 */
import { appendFileSync } from "node:fs";
import { openJournal, type Journal } from "../../../origin/journal/mod.ts";
import { clock, random } from "../../../origin/ports/mod.ts";
import { realDisk } from "../../../origin/storage/mod.ts";
import { settle } from "./harness.ts";
import { childSizes, ledgerEntry } from "./ledger.ts";

const [mode = "", dir = "", ledger = ""] = process.argv.slice(2);
const outstandingMax = 200;

function fill(journal: Journal): void {
  while (journal.reserved - journal.durable < outstandingMax) {
    journal.append([ledgerEntry(journal.reserved + 1)]);
  }
}

const journal: Journal = await openJournal(
  {
    dir,
    disk: realDisk,
    clock,
    random,
    ...childSizes,
    events: {
      onDurable: (durable) => {
        appendFileSync(ledger, `${durable}\n`);
        if (mode === "write") {
          setImmediate(fill, journal);
        }
      },
      onFailed: (error) => {
        throw error;
      },
    },
  },
  () => undefined,
);
process.stdout.write("open\n");
if (mode === "write") {
  fill(journal);
}
if (mode === "hold") {
  setInterval(() => undefined, 1000);
}
if (mode === "idle") {
  journal.append([ledgerEntry(journal.reserved + 1)]);
  await journal.flush();
  await settle();
  process.stdout.write(`alive by ${process.getActiveResourcesInfo().join()}\n`);
}
