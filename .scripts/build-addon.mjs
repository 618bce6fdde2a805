/**
 * Compiles origin/native/*.c into .build/forebay.node with one call of `cc`: plain Node-API, no
 * node-gyp, no install script. Without a compiler the origin uses its built-in JavaScript path.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { buildDir, capture, root } from "./run.mjs";

const sourceDir = join(root, "origin/native");
const addon = join(buildDir, "forebay.node");

const flags = ["-std=c17", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Werror"];
const linking = ["-fvisibility=hidden", "-shared", "-fPIC", "-pthread"];

/** @param {string} end */
const filesEndingIn = (end) =>
  existsSync(sourceDir)
    ? readdirSync(sourceDir)
        .filter((name) => name.endsWith(end))
        .map((name) => join(sourceDir, name))
        .toSorted()
    : [];

function hasCompiler() {
  const dirs = (process.env["PATH"] ?? "").split(delimiter);
  return dirs.some((dir) => existsSync(join(dir, "cc")));
}

/** True also when there is nothing to build, or nothing to build it with. */
export function addonIsCurrent() {
  const sources = filesEndingIn(".c");
  if (process.platform !== "linux" || sources.length === 0) {
    return true;
  }
  const builtAt = statSync(addon, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const inputs = [...sources, ...filesEndingIn(".h"), join(root, ".scripts/build-addon.mjs")];
  return inputs.every((path) => statSync(path).mtimeMs < builtAt);
}

/**
 * Compiles into `to`, with `extra` flags.
 * @param {string} to
 * @param {readonly string[]} extra
 */
export function compileAddon(to, extra = []) {
  const include = join(root, "node_modules/node-api-headers/include");
  const inputs = ["-I", include, ...filesEndingIn(".c"), "-o", to];
  return capture("cc", [...flags, ...linking, ...extra, ...inputs]);
}

/**
 * Builds aside and renames: a running origin keeps the file it loaded.
 * @returns {Promise<boolean>} false when the compiler refused the source
 */
export async function buildAddon() {
  if (!hasCompiler()) {
    console.log("setup: no C compiler (cc); the built-in JavaScript path is used");
    return true;
  }
  mkdirSync(buildDir, { recursive: true });
  const aside = `${addon}.${process.pid}`;
  const { code, output } = await compileAddon(aside);
  if (code !== 0) {
    rmSync(aside, { force: true });
    rmSync(addon, { force: true });
    console.error(`${output}\nsetup: the native addon does not compile (cc ended with ${code});`);
    console.error("the built-in JavaScript path is used");
    return false;
  }
  renameSync(aside, addon);
  console.log("setup: native addon built");
  return true;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  process.exit((await buildAddon()) ? 0 : 1);
}
