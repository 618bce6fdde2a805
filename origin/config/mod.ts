/**
 * Configuration: flags > environment > `forebay.toml` > defaults, from one table of settings; every value keeps
 * where it came from.
 */
export { fileName } from "./file.ts";
export { isLoopback, originConfig } from "./origin.ts";
export { resolveSettings, sourceText, type Inputs } from "./resolve.ts";
export { didYouMean, suggest } from "./suggest.ts";
export { settingNames, table, type Setting } from "./table.ts";
export type { LogLevel, OriginConfig, Resolved, SettingName, Settings, Source } from "./types.ts";
