/**
 * What every script here shares: where the tree is, how a tool of node_modules is started, and how
 * an argument is refused. Plain JavaScript without dependencies, since it runs before `npm ci` and
 * under the system's Node (20 or later).
 */
import { spawn } from "node:child_process";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");
export const buildDir = join(root, ".build");
const bin = join(root, "node_modules", ".bin");

/**
 * Tools find Node 24 first, the system's Node would stop wrangler; and wrangler and miniflare ask
 * nothing of the network.
 * @returns {NodeJS.ProcessEnv}
 */
export function toolEnvironment() {
  return {
    ...process.env,
    PATH: [bin, process.env["PATH"] ?? ""].join(delimiter),
    WRANGLER_HIDE_BANNER: "true",
    WRANGLER_SEND_METRICS: "false",
    CLOUDFLARE_CF_FETCH_ENABLED: "false",
  };
}

/**
 * Runs a command in the tree, its output on our own stdout and stderr. An interrupt reaches the
 * child too (same process group), so we wait for it instead of ending before it does.
 * @param {string} command a name of node_modules/.bin or of PATH
 * @param {readonly string[]} args
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {Promise<number>} its exit code; 128 when a signal ended it
 */
export function run(command, args, env = toolEnvironment()) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, env, stdio: "inherit" });
    const wait = () => {};
    process.on("SIGINT", wait);
    const passOn = () => child.kill("SIGTERM");
    process.on("SIGTERM", passOn);
    child.on("error", reject);
    child.on("close", (code) => {
      process.off("SIGINT", wait);
      process.off("SIGTERM", passOn);
      resolve(code ?? 128);
    });
  });
}

/**
 * Runs a command and keeps what it prints.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {Promise<{ code: number, output: string }>} stdout and stderr as they came
 */
export function capture(command, args, env = toolEnvironment()) {
  return new Promise((resolve, reject) => {
    const options = { cwd: root, env: { ...env, NO_COLOR: "1" } };
    const child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    const take = (/** @type {Buffer} */ chunk) => {
      output += chunk.toString();
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.on("error", reject);
    child.on("close", (code) => resolve({ code: code ?? 128, output }));
  });
}

/**
 * Prints the usage and ends: 0 when it was asked for, 64 (EX_USAGE) when `problem` says why not.
 * @param {string} usage
 * @param {string} [problem]
 * @returns {never}
 */
export function endWithUsage(usage, problem) {
  if (problem === undefined) {
    console.log(usage.trim());
    process.exit(0);
  }
  console.error(`${problem}\n\n${usage.trim()}`);
  process.exit(64);
}
