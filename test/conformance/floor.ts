import { readFileSync } from "node:fs";
import type { Side } from "./side.ts";

/** How many tests must pass on each side, of how many there are. The counts may only rise. */
export interface Floor {
  readonly total: number;
  readonly passed: Readonly<Record<Side, number>>;
}

export const floor: Floor = JSON.parse(
  readFileSync(new URL("floor.json", import.meta.url), "utf8"),
);
