import { createHash } from "node:crypto";
import type { Findings } from "../../../origin/journal/mod.ts";

/** What an exploration has seen so far. */
export interface Explored {
  /** Images recovered, and how many of them were distinct. */
  images: number;
  readonly distinct: Set<number>;
  /** Power cuts between two barrier steps. */
  readonly pairs: Map<string, number>;
  /** Rows of the recovery table that were decided by. */
  readonly rows: Map<string, number>;
  /** One line per image: with the seed it must repeat itself. */
  readonly log: ReturnType<typeof createHash>;
}

export function newExplored(): Explored {
  const [distinct, pairs, rows] = [new Set<number>(), new Map(), new Map()];
  return { images: 0, distinct, pairs, rows, log: createHash("sha256") };
}

export function noteRow(explored: Explored, row: string, times = 1): void {
  explored.rows.set(row, (explored.rows.get(row) ?? 0) + times);
}

export function noteFindings(explored: Explored, findings: Findings): void {
  for (const [row, times] of Object.entries(findings)) {
    if (times > 0) {
      noteRow(explored, row);
    }
  }
}

/** Rows that let a start go on; those that refuse it are in `damage.ts`. */
export const findingRows: readonly (keyof Findings)[] = [
  "empty",
  "creating",
  "sealed",
  "cleanEnd",
  "crashTail",
  "activeEmpty",
  "midRotation",
  "spares",
  "belowHead",
];
