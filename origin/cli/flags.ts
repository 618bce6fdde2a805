import { Option, type Command } from "commander";
import {
  resolveSettings,
  settingNames,
  table,
  type Resolved,
  type SettingName,
} from "../config/mod.ts";
import type { Terminal } from "./terminal.ts";

/** Adds the flags of all settings that `user` has, `--config` and `--json`, straight from the table. */
export function addFlags(command: Command, user: "start" | "client" | "all"): Command {
  for (const name of settingNames) {
    const { usedBy } = table[name];
    if (user === "all" || usedBy === "both" || usedBy === user) {
      addFlag(command, name);
    }
  }
  return addFileAndJson(command);
}

function addFileAndJson(command: Command): Command {
  return command
    .option("--config <file>", "TOML file to read (default: forebay.toml, if there is one)")
    .option("--json", "one JSON document per line, errors too");
}

/** Adds the flags of a command that looks at the data directory itself. */
export function addDataFlags(command: Command): Command {
  addFlag(command, "data");
  return addFileAndJson(command);
}

function addFlag(command: Command, name: SettingName): void {
  const { flag, variable, help } = table[name];
  if (name === "edge") {
    command.addOption(new Option("--no-edge", `leave the edge out (${variable}=false)`));
    return;
  }
  const shown = defaultText(name);
  const text = `${help} (${variable}${shown === null ? "" : `, default ${shown}`})`;
  command.addOption(new Option(`${flag} <value>`, text));
}

function defaultText(name: SettingName): string | null {
  // The lookup loses the tie between a name and its own type; the table holds it.
  const { fallback, show } = table[name] as { fallback: unknown; show(value: unknown): string };
  return fallback === null ? null : show(fallback);
}

/**
 * The settings of a command that was parsed.
 *
 * @throws ForebayError `config_invalid`
 */
export function settingsOf(command: Command, terminal: Terminal): Resolved {
  const flags: Partial<Record<SettingName, string>> = {};
  const given: Record<string, unknown> = command.opts();
  for (const name of settingNames) {
    const value = given[name];
    if (command.getOptionValueSource(name) === "cli" && value !== undefined) {
      flags[name] = String(value);
    }
  }
  const file = given["config"];
  return resolveSettings({
    flags,
    env: terminal.env,
    file: typeof file === "string" ? file : null,
    cwd: terminal.cwd,
  });
}

export function wantsJson(command: Command): boolean {
  const given: Record<string, unknown> = command.opts();
  return given["json"] === true;
}
