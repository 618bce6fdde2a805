import { resolve } from "node:path";
import type { Command } from "commander";
import { ForebayError } from "../../shared/errors/mod.ts";
import { realDisk } from "../storage/mod.ts";
import { settingsOf } from "./flags.ts";
import type { Terminal } from "./terminal.ts";

/** The directory that `--data` and its like name, and the journals in it. */
export interface DataDirectory {
  readonly dir: string;
  readonly journals: string;
  /** The one shard's journal. */
  readonly journal: string;
}

/** @throws ForebayError `config_invalid` when there is no such directory */
export async function dataDirectory(command: Command, terminal: Terminal): Promise<DataDirectory> {
  const { values } = settingsOf(command, terminal);
  const dir = resolve(terminal.cwd, values.data);
  const journals = `${dir}/journal`;
  if ((await realDisk.stat(journals)) === undefined) {
    throw new ForebayError("config_invalid", `${dir} is no data directory: it has no journal`);
  }
  return { dir, journals, journal: `${journals}/0` };
}
