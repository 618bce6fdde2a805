import { ForebayError } from "../../shared/errors/mod.ts";
import { formatVersion } from "./layout.ts";

/** The refusal of recovery: what is wrong where. Nothing was changed. */
export function corrupt(path: string, what: string): ForebayError {
  return new ForebayError("journal_corrupt", `${path}: ${what}; nothing was changed`);
}

export function newerVersion(path: string, version: number): ForebayError {
  return new ForebayError(
    "format_unsupported",
    `${path} is in format version ${version}, this build reads ${formatVersion}; nothing was changed`,
  );
}
