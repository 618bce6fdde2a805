/** Configuration: flags > env > TOML > defaults, each value with where it came from. */
export type { LogLevel, OriginConfig } from "./types.ts";
