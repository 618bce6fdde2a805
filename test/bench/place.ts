import { mkdirSync } from "node:fs";

/** Where benchmarks put their data: on the disk of the checkout, never on a tmpfs. */
export function buildDir(): string {
  const dir = new URL("../../.build", import.meta.url).pathname;
  mkdirSync(dir, { recursive: true });
  return dir;
}
