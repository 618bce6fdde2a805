import { dirname, resolve } from "node:path";
import { ForebayError } from "../../shared/errors/mod.ts";
import { readConfigFile, type ConfigFile } from "./file.ts";
import { didYouMean } from "./suggest.ts";
import { isSettingName, settingNames, table, type Setting } from "./table.ts";
import type { Resolved, SettingName, Settings, Source } from "./types.ts";

export interface Inputs {
  /** Text of the flags that were given, by setting; `edge` as "true" or "false". */
  readonly flags: Readonly<Partial<Record<SettingName, string>>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The value of `--config`, null without it. */
  readonly file: string | null;
  readonly cwd: string;
}

/** Variables that others set: test runs, and Kubernetes for a Service named forebay. */
const foreignVariables = /^FOREBAY_(?:TEST|SOAK|BENCH|SERVICE|PORT)_|^FOREBAY_(?:SOAK|TEST|BENCH)$/;

/**
 * Every setting, from flags > environment > TOML file > defaults, with where it came from.
 *
 * @throws ForebayError `config_invalid`: an unknown key, or a value that is not accepted, naming value, source and
 * what is accepted
 */
export function resolveSettings(inputs: Inputs): Resolved {
  const file = readConfigFile(inputs.file, inputs.cwd);
  refuseUnknownKeys(file);
  refuseUnknownVariables(inputs.env);
  const values: Partial<Record<SettingName, unknown>> = {};
  const sources: Partial<Record<SettingName, Source>> = {};
  for (const name of settingNames) {
    const found = find(name, inputs, file);
    sources[name] = found.source;
    values[name] =
      found.source.kind === "default" ? table[name].fallback : check(name, found.raw, found.source);
  }
  if (file !== null && sources.data?.kind === "file") {
    // A path in a file means a path beside the file, wherever the process was started.
    values.data = resolve(dirname(file.path), String(values.data));
  }
  // Each name was visited, and each value passed its own schema.
  return {
    values: values as Settings,
    sources: sources as Record<SettingName, Source>,
    file: file?.path ?? null,
  };
}

function find(
  name: SettingName,
  { flags, env }: Inputs,
  file: ConfigFile | null,
): { readonly raw: unknown; readonly source: Source } {
  const { flag, variable, fromText } = table[name];
  const flagText = flags[name];
  if (flagText !== undefined) {
    return { raw: fromText(flagText), source: { kind: "flag", flag } };
  }
  const envText = env[variable];
  // An empty variable is how shells and unit files say "not set".
  if (envText !== undefined && envText !== "") {
    return { raw: fromText(envText), source: { kind: "env", variable } };
  }
  if (file !== null && Object.hasOwn(file.values, name)) {
    return { raw: file.values[name], source: { kind: "file", path: file.path } };
  }
  return { raw: undefined, source: { kind: "default" } };
}

function check(name: SettingName, raw: unknown, source: Source): unknown {
  const setting: Setting<never> | Setting<unknown> = table[name];
  const result = setting.schema.safeParse(raw);
  if (result.success) {
    return result.data;
  }
  const shown = setting.secret ? "" : ` = ${JSON.stringify(raw) ?? String(raw)}`;
  throw new ForebayError(
    "config_invalid",
    `${name}${shown} (from ${sourceText(source)}) is not accepted; give ${setting.accepts}${hint(raw, source)}`,
  );
}

/** Kubernetes sets FOREBAY_PORT=tcp://… in every pod when a Service is named forebay. */
function hint(raw: unknown, source: Source): string {
  return source.kind === "env" && typeof raw === "string" && raw.startsWith("tcp://")
    ? " (Kubernetes set it for a Service of this name: enableServiceLinks: false)"
    : "";
}

/** How a source is named in messages and by `config print`. */
export function sourceText(source: Source): string {
  switch (source.kind) {
    case "flag":
      return source.flag;
    case "env":
      return source.variable;
    case "file":
      return source.path;
    case "default":
      return "default";
  }
}

function refuseUnknownKeys(file: ConfigFile | null): void {
  for (const key of Object.keys(file?.values ?? {})) {
    if (!isSettingName(key)) {
      throw new ForebayError(
        "config_invalid",
        `${JSON.stringify(key)} in ${file?.path} is not a setting${didYouMean(key, settingNames)}`,
      );
    }
  }
}

function refuseUnknownVariables(env: Inputs["env"]): void {
  const known = settingNames.map((name) => table[name].variable);
  for (const [variable, value] of Object.entries(env)) {
    const ours = variable.startsWith("FOREBAY_") && !foreignVariables.test(variable);
    if (ours && value !== undefined && value !== "" && !known.includes(variable)) {
      throw new ForebayError(
        "config_invalid",
        `the environment variable ${variable} is not a setting${didYouMean(variable, known)}`,
      );
    }
  }
}
