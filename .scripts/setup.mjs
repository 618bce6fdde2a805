/**
 * Brings a fresh clone to where the npm scripts can run. Runs before each of them, under whatever
 * Node there is (20 or later), and is quiet and quick when there is nothing to do. What follows in
 * the npm script runs on the Node 24 of node_modules/.bin, which npm puts first in PATH.
 */
import { existsSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { addonIsCurrent, buildAddon } from "./build-addon.mjs";
import { lock } from "./lock.mjs";
import { endWithUsage, root, run } from "./run.mjs";

const usage = `
Usage: node .scripts/setup.mjs [--test | --bench]

Installs the packages of package-lock.json when node_modules is missing or older, and builds the
native addon when there is a C compiler.

  --test    also what the tests need of Debian: chromium, collectd, a C compiler
  --bench   also what the benchmarks need of Debian: wrk, a C compiler
  --help    this text
`;

/** What is looked for, and the Debian packages that bring it. */
const compiler = { program: "cc", packages: ["gcc", "libc6-dev"] };
const chromium = { program: "chromium", packages: ["chromium"] };
const collectd = { program: "collectd", packages: ["collectd-core"] };
/** collectd's write_http needs them and the package only recommends them. */
const yajl = { program: "libyajl.so.2", packages: ["libyajl2", "libcurl3-gnutls"] };
const wrk = { program: "wrk", packages: ["wrk"] };

/** @typedef {{ program: string, packages: string[] }} Need */

/** @type {Record<string, Need[]>} */
const needsOf = { "--test": [chromium, collectd, yajl, compiler], "--bench": [wrk, compiler] };

/** @param {string} path @returns {number} 0 when there is no such file */
function modifiedMs(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** npm writes its hidden lock file last, so one that is newer than ours tells of a whole install. */
function packagesAreCurrent() {
  const installed = modifiedMs(join(root, "node_modules/.package-lock.json"));
  return installed > 0 && installed >= modifiedMs(join(root, "package-lock.json"));
}

/**
 * PATH without the Node of node_modules: `npm ci` begins by deleting it, together with whatever
 * runs on it.
 */
function outerEnvironment() {
  const dirs = (process.env["PATH"] ?? "").split(delimiter);
  const outer = dirs.filter((dir) => !dir.startsWith(join(root, "node_modules")));
  return { ...process.env, PATH: outer.join(delimiter) };
}

/** @returns {Promise<number>} exit code */
async function installPackages() {
  const startedAt = Date.now();
  console.log("setup: installing packages (npm ci) …");
  // Development packages too, whatever NODE_ENV says: `npm start` itself needs wrangler.
  const args = ["ci", "--include=dev", "--no-audit", "--no-fund", "--loglevel=error"];
  const code = await run("npm", args, outerEnvironment());
  if (code !== 0) {
    console.error(`setup: npm ci ended with ${code}; see its message above`);
    return code;
  }
  if (!existsSync(join(root, "node_modules/.bin/node"))) {
    console.error(
      "setup: npm ci did not bring node_modules/.bin/node: the install scripts of package.json's\n" +
        "allowScripts did not run. Try again with: npm_config_ignore_scripts=false npm ci",
    );
    return 1;
  }
  const seconds = Math.round((Date.now() - startedAt) / 1000);
  console.log(`setup: packages installed in ${seconds} s`);
  return 0;
}

/** @param {string} program or shared library */
function isInstalled(program) {
  const libraries = `/usr/lib/${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu`;
  const path = (process.env["PATH"] ?? "").split(delimiter);
  const dirs = [...path, "/usr/sbin", "/sbin", libraries];
  return dirs.some((dir) => existsSync(join(dir, program)));
}

/** What cannot be installed is said and not fatal: what needs it fails with its own message. */
async function installPrograms(/** @type {Need[]} */ missing) {
  const packages = missing.flatMap((need) => need.packages);
  const names = missing.map((need) => need.program).join(", ");
  if (process.getuid?.() !== 0 || !isInstalled("apt-get")) {
    console.error(
      `setup: ${names} not found; on Debian: sudo apt-get install ${packages.join(" ")}`,
    );
    return;
  }
  console.log(`setup: installing ${packages.join(" ")} (apt-get) …`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const quiet = ["-qq", "-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Use-Pty=0"];
  const updated = await run("apt-get", [...quiet, "update"], env);
  const install = [...quiet, "install", "-y", "--no-install-recommends", ...packages];
  if (updated !== 0 || (await run("apt-get", install, env)) !== 0) {
    console.error(`setup: apt-get failed; ${names} must be installed by hand`);
  }
}

/** @param {string[]} flags */
async function setUp(flags) {
  const missing = flags
    .flatMap((flag) => needsOf[flag] ?? [])
    .filter((need) => !isInstalled(need.program));
  if (packagesAreCurrent() && missing.length === 0 && addonIsCurrent()) {
    return 0;
  }
  await lock();
  // Whoever held the lock may have done our work.
  if (!packagesAreCurrent()) {
    const code = await installPackages();
    if (code !== 0) {
      return code;
    }
  }
  const stillMissing = missing.filter((need) => !isInstalled(need.program));
  if (stillMissing.length > 0) {
    await installPrograms(stillMissing);
  }
  const built = addonIsCurrent() || (await buildAddon());
  // A start goes on without the addon; a test run must not pass without it.
  return built || !flags.includes("--test") ? 0 : 1;
}

const flags = process.argv.slice(2);
if (flags.includes("--help")) {
  endWithUsage(usage);
}
const unknown = flags.find((flag) => !(flag in needsOf));
if (unknown !== undefined) {
  endWithUsage(usage, `setup: unknown argument ${JSON.stringify(unknown)}`);
}
process.exit(await setUp(flags));
