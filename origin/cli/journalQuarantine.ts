import type { Command } from "commander";
import {
  listQuarantine,
  missingRanges,
  readableRanges,
  restoreQuarantined,
  surveyJournal,
  verifyJournal,
  type LsnRange,
} from "../journal/mod.ts";
import { realDisk } from "../storage/mod.ts";
import { dataDirectory } from "./dataDirectory.ts";
import { printLine, type Terminal } from "./terminal.ts";

const lockWaitMs = 0;

/** `forebay journal quarantine ls`. */
export async function listSetAside(
  command: Command,
  json: boolean,
  terminal: Terminal,
): Promise<void> {
  const { journals } = await dataDirectory(command, terminal);
  for (const name of await listQuarantine(realDisk, journals)) {
    const dir = `${journals}/${name}`;
    const survey = await surveyJournal(realDisk, dir);
    const readable = readableRanges(survey);
    const missing = missingRanges(survey);
    const damage = await damageOf(dir);
    const line = json
      ? JSON.stringify({ name, dir, readable, missing, trimmed: survey.trimmed, damage })
      : `${name}  readable ${text(readable)}  missing ${text(missing)}  ${damage ?? "whole: can be restored"}`;
    await printLine(terminal, line);
  }
}

async function damageOf(dir: string): Promise<string | null> {
  try {
    await verifyJournal(realDisk, dir);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function text(ranges: readonly LsnRange[]): string {
  return ranges.map(([first, last]) => `${first}–${last}`).join(", ") || "nothing";
}

/** `forebay journal quarantine restore`. */
export async function restore(
  command: Command,
  options: { readonly name: string; readonly json: boolean },
  terminal: Terminal,
): Promise<void> {
  const { dir, journals } = await dataDirectory(command, terminal);
  const lock = await realDisk.lock(dir, lockWaitMs);
  try {
    const { shard, replaced } = await restoreQuarantined(realDisk, journals, options.name);
    const aside = replaced === null ? "" : `; what was there is now ${replaced}`;
    const line = options.json
      ? JSON.stringify({ restored: options.name, to: `${journals}/${shard}`, replaced })
      : `${options.name} is ${journals}/${shard} again${aside}`;
    await printLine(terminal, line);
  } finally {
    await lock.release();
  }
}
