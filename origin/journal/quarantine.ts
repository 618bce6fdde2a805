import { ForebayError } from "../../shared/errors/mod.ts";
import type { Disk } from "../storage/mod.ts";
import { verifyJournal } from "./recover.ts";
import { missingRanges, readableRanges, surveyJournal, type LsnRange } from "./survey.ts";

/** `<shard>.quarantine-<number>` in `<data>/journal`; numbers only rise. */
const pattern = /^([\w-]+)\.quarantine-(\d+)$/;

export interface SetAside {
  /** Its name in `<data>/journal`. */
  readonly name: string;
  /** Where it lies, why, and what of it can be read. */
  readonly message: string;
}

/** Journals set aside in `<data>/journal`, oldest first. */
export async function listQuarantine(disk: Disk, journals: string): Promise<string[]> {
  if ((await disk.stat(journals)) === undefined) {
    return [];
  }
  const names = await disk.list(journals);
  return names.filter((name) => pattern.test(name)).toSorted((a, b) => numberOf(a) - numberOf(b));
}

/**
 * Verifies the journal in `<journals>/<shard>` and, when it is damaged, gives its directory another name. Every byte is kept;
 * the next start makes a new journal with a new id.
 *
 * @returns undefined: nothing is wrong with it
 * @throws ForebayError but for `journal_corrupt`, or the error of a failed call: those are no reason to set it aside
 */
export async function setAsideIfDamaged(
  disk: Disk,
  journals: string,
  shard: string,
): Promise<SetAside | undefined> {
  const dir = `${journals}/${shard}`;
  let damage: ForebayError;
  try {
    await verifyJournal(disk, dir);
    return undefined;
  } catch (error) {
    if (!(error instanceof ForebayError) || error.code !== "journal_corrupt") {
      throw error;
    }
    damage = error;
  }
  const lost = await lossOf(disk, dir);
  const name = await setAside(disk, journals, shard);
  const why = damage.message.replace(/; nothing was changed$/, "");
  return {
    name,
    message: `the damaged journal ${dir} was set aside as ${journals}/${name}, every byte kept. ${why}. ${lost}`,
  };
}

/** What of a journal is served no more when it is set aside. */
async function lossOf(disk: Disk, dir: string): Promise<string> {
  const survey = await surveyJournal(disk, dir);
  const readable = readableRanges(survey);
  const missing = missingRanges(survey);
  const held =
    readable.length === 0 ? "no entry that can be read" : `the entries ${text(readable)}`;
  const damaged = missing.length === 0 ? "" : `; ${text(missing)} cannot be read`;
  return `It holds ${held}${damaged}; entries up to ${survey.trimmed} were trimmed. None of them is served until it is restored`;
}

function text(ranges: readonly LsnRange[]): string {
  return ranges
    .map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`))
    .join(", ");
}

async function setAside(disk: Disk, journals: string, shard: string): Promise<string> {
  const last = Math.max(0, ...(await listQuarantine(disk, journals)).map(numberOf));
  const name = `${shard}.quarantine-${last + 1}`;
  await disk.rename(`${journals}/${shard}`, `${journals}/${name}`);
  await disk.syncDirectory(journals);
  return name;
}

export interface Restored {
  readonly shard: string;
  /** What the journal that was in its place is called now; null when there was none. */
  readonly replaced: string | null;
}

/**
 * Puts a journal back that was set aside and has been repaired. The one in its place is set aside in turn. The caller holds the
 * data directory's lock.
 *
 * @throws ForebayError `config_invalid` for a name that is not there; `journal_corrupt` when it is still damaged: nothing
 *   was changed
 */
export async function restoreQuarantined(
  disk: Disk,
  journals: string,
  name: string,
): Promise<Restored> {
  const shard = pattern.exec(name)?.[1];
  const there = await listQuarantine(disk, journals);
  if (shard === undefined || !there.includes(name)) {
    const names = there.length === 0 ? "none" : there.join(", ");
    throw new ForebayError(
      "config_invalid",
      `there is no ${JSON.stringify(name)} in ${journals}; set aside are: ${names}`,
    );
  }
  await verifyJournal(disk, `${journals}/${name}`);
  const occupied = (await disk.stat(`${journals}/${shard}`)) !== undefined;
  const replaced = occupied ? await setAside(disk, journals, shard) : null;
  await disk.rename(`${journals}/${name}`, `${journals}/${shard}`);
  await disk.syncDirectory(journals);
  return { shard, replaced };
}

function numberOf(name: string): number {
  return Number(pattern.exec(name)?.[2] ?? 0);
}
