import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { buildDir } from "../../../.scripts/run.mjs";
import { scratchVariable } from "./committerUnderTest.ts";
import { buildTestAddon } from "./testAddon.ts";

/** Where gcc keeps the library that has to be loaded first; undefined where there is none. */
function sanitizerLibrary(): string | undefined {
  try {
    const path = execFileSync("cc", ["-print-file-name=libasan.so"]).toString().trim();
    return existsSync(path) ? path : undefined;
  } catch {
    return undefined;
  }
}

const library = sanitizerLibrary();

it.skipIf(library === undefined)(
  "under AddressSanitizer and UBSan no access is out of bounds, in any backend, through failures and ends",
  async () => {
    const addon = await buildTestAddon(["-fsanitize=address,undefined", "-fno-sanitize-recover"]);
    const script = fileURLToPath(new URL("sanitized.ts", import.meta.url));
    const scratch = mkdtempSync(join(buildDir, "sanitized-"));
    const env = {
      ...process.env,
      [scratchVariable]: scratch,
      LD_PRELOAD: library ?? "",
      // Node itself keeps memory until its end.
      ASAN_OPTIONS: "detect_leaks=0:abort_on_error=1",
    };
    const output = await new Promise<string>((resolve) => {
      const args = ["--expose-gc", script, addon ?? ""];
      execFile(process.execPath, args, { env, timeout: 55_000 }, (error, stdout, stderr) => {
        resolve(`${error === null ? 0 : (error.code ?? error.signal)} ${stdout}${stderr}`);
      });
    });
    rmSync(scratch, { recursive: true, force: true });
    expect(output).toBe("0 sound\n");
  },
  60_000,
);
