import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parse, TomlError } from "smol-toml";
import { ForebayError } from "../../shared/errors/mod.ts";

export const fileName = "forebay.toml";

export interface ConfigFile {
  /** Absolute. */
  readonly path: string;
  readonly values: Readonly<Record<string, unknown>>;
}

/**
 * Reads the file asked for, or `forebay.toml` of the working directory if there is one.
 *
 * @throws ForebayError `config_invalid` when the file asked for cannot be read, or it is not TOML
 */
export function readConfigFile(asked: string | null, cwd: string): ConfigFile | null {
  const path = resolve(cwd, asked ?? fileName);
  if (asked === null && !existsSync(path)) {
    return null;
  }
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ForebayError("config_invalid", `the configuration file cannot be read: ${why}`, {
      cause,
    });
  }
  return { path, values: parseToml(text, path) };
}

function parseToml(text: string, path: string): Readonly<Record<string, unknown>> {
  try {
    return parse(text);
  } catch (cause) {
    if (!(cause instanceof TomlError)) {
      throw cause;
    }
    // The message ends in a drawing of the line, which is of no use in one line.
    const what = (cause.message.split("\n")[0] ?? "").replace(/^Invalid TOML document:\s*/, "");
    throw new ForebayError(
      "config_invalid",
      `${path}:${cause.line}:${cause.column} is not TOML: ${what}`,
      { cause },
    );
  }
}
