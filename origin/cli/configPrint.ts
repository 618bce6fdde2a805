import { settingNames, sourceText, table, type Resolved, type SettingName } from "../config/mod.ts";
import { printLine, type Terminal } from "./terminal.ts";

/** `forebay config print`: every setting, its value and where that came from. Secrets are only said to be set. */
export async function printConfig(
  resolved: Resolved,
  json: boolean,
  terminal: Terminal,
): Promise<void> {
  if (json) {
    const entries = settingNames.map((name) => [
      name,
      { value: shownJson(resolved, name), source: sourceText(resolved.sources[name]) },
    ]);
    await printLine(terminal, JSON.stringify(Object.fromEntries(entries)));
    return;
  }
  const rows = settingNames.map((name) => [
    name,
    shownText(resolved, name),
    sourceText(resolved.sources[name]),
  ]);
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  for (const row of rows) {
    const cells = row.map((cell, column) => cell.padEnd(widths[column] ?? 0));
    await printLine(terminal, cells.join("  ").trimEnd());
  }
}

function shownJson({ values }: Resolved, name: SettingName): unknown {
  const value = values[name];
  return table[name].secret && value !== null ? "set" : value;
}

function shownText({ values }: Resolved, name: SettingName): string {
  const value = values[name];
  // The lookup loses the tie between a name and its own type; the table holds it.
  const { secret, show } = table[name] as { secret: boolean; show(shown: unknown): string };
  return secret && value !== null ? "set" : show(value);
}
