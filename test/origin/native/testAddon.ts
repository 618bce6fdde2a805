import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { buildDir, root } from "../../../.scripts/run.mjs";
import { compileAddon } from "../../../.scripts/build-addon.mjs";
import { loadAddon, type CommitterHandle, type NativeLayer } from "../../../origin/native/load.ts";

/** The places a test build can be made to sleep at (origin/native/committer.h, `enum pause`). */
export const pause = {
  beforeParked: 0,
  parked: 1,
  beforeSleep: 2,
  afterFailure: 3,
  write: 4,
} as const;

/** The addon as test builds have it; see origin/native/testing.c. */
export interface TestLayer extends NativeLayer {
  testPause(handle: CommitterHandle, step: number, us: number): void;
  testFault(handle: CommitterHandle, after: number, result: number): void;
  testRefuseSetup(errno: number): void;
  testSeccomp(): void;
}

/** Names of errno as Linux numbers them. */
export const errno = {
  EPERM: 1,
  EIO: 5,
  ENOMEM: 12,
  EINVAL: 22,
  ENOSYS: 38,
  EOPNOTSUPP: 95,
} as const;

let builds = 0;

function sourcesHash(flags: readonly string[]): string {
  const hash = createHash("sha1").update(flags.join(" "));
  const dir = join(root, "origin/native");
  for (const name of readdirSync(dir)
    .filter((file) => /\.[ch]$/.test(file))
    .toSorted()) {
    hash.update(name).update(readFileSync(join(dir, name)));
  }
  return hash.digest("hex").slice(0, 12);
}

/**
 * Compiles a test build, once per state of the sources, and returns its path; undefined where there is no compiler.
 *
 * @param flags more of them for cc, such as `-DWITHOUT_…`
 */
export async function buildTestAddon(flags: readonly string[] = []): Promise<string | undefined> {
  const dir = join(buildDir, "test-addons");
  mkdirSync(dir, { recursive: true });
  const path = join(dir, `${sourcesHash(flags)}.node`);
  if (!existsSync(path)) {
    builds += 1;
    const aside = `${path}.${process.pid}.${builds}`;
    const given = ["-DFOREBAY_TESTING", ...flags];
    const { code, output } = await compileAddon(aside, given).catch((error: unknown) => ({
      code: -1,
      output: String(error),
    }));
    if (code === -1) {
      return undefined;
    }
    if (code !== 0) {
      throw new Error(output);
    }
    renameSync(aside, path);
  }
  return path;
}

export function loadTestAddon(path: string): TestLayer {
  const { layer, absence } = loadAddon(path);
  if (layer === undefined) {
    throw new Error(absence);
  }
  return layer as TestLayer;
}
