import type { Command } from "commander";
import type { Resolved } from "../config/mod.ts";
import { settingsOf } from "./flags.ts";
import { Remote } from "./remote.ts";
import type { Terminal } from "./terminal.ts";

/** Runs `work` against the server that the command's flags name, and leaves no connection of it open. */
export async function withRemote(
  command: Command,
  terminal: Terminal,
  work: (remote: Remote) => Promise<void>,
): Promise<void> {
  const { values }: Resolved = settingsOf(command, terminal);
  const remote = new Remote(values.url, values.key);
  try {
    await work(remote);
  } finally {
    await remote.close();
  }
}
