/** Opens a journal where the kernel refuses io_uring and says what was chosen: `storageChild.ts <addon> <dir> <wanted>`. */
import { openJournal, type StorageChoice } from "../../../origin/journal/mod.ts";
import { clock, random } from "../../../origin/ports/mod.ts";
import { realDisk } from "../../../origin/storage/mod.ts";
import { loadTestAddon } from "../native/testAddon.ts";

const [addon = "", dir = "", wanted = "auto"] = process.argv.slice(2);
const native = loadTestAddon(addon);
native.testSeccomp();
const events = { onDurable: () => undefined, onFailed: () => undefined };
const sizes = { segmentBytes: 1024 * 1024, budgetBytes: 4 * 1024 * 1024 };
try {
  const journal = await openJournal(
    {
      dir,
      disk: realDisk,
      clock,
      random,
      events,
      native,
      storage: wanted as StorageChoice,
      ...sizes,
    },
    () => undefined,
  );
  journal.append([new Uint8Array(100)]);
  await journal.flush();
  console.log(`${journal.storage} | ${journal.storageReason} | ${journal.durable}`);
  await journal.close();
} catch (error) {
  console.log(`${(error as { code: string }).code} | ${(error as Error).message}`);
}
