import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** One file of the tree: its path from the root, with `/`, and its text. */
export interface TreeFile {
  readonly path: string;
  readonly text: string;
}

export const root = fileURLToPath(new URL("../..", import.meta.url));

const binary = /\.(?:png|jpg|ico|gz|bin|wasm)$/;

/** Every text file that is committed or about to be: tracked, or neither tracked nor ignored. */
export function readTree(): TreeFile[] {
  const listing = execFileSync("git", ["ls-files", "-z", "-co", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  return listing
    .split("\0")
    .filter((path) => path !== "" && !binary.test(path) && existsSync(join(root, path)))
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

/** `origin/journal/ring.ts` → `origin`. */
export const partOf = (path: string): string => path.split("/")[0] ?? "";

/** The parts whose structure is ruled: everything that ships. */
export const isSource = (path: string): boolean => /^(?:shared|edge|origin)\/.*\.ts$/.test(path);
