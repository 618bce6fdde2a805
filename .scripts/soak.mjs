/** Runs the long version of a suite. See the usage. */
import { endWithUsage } from "./run.mjs";
import { runTests } from "./test.mjs";

/** Name → the test files it runs. */
const suites = { crash: "test/crash/", fuzz: "test/fuzz/", chaos: "test/chaos/" };

const usage = `
Usage: npm run soak -- NAME [--seed N] [--minutes N]

Runs the long version of a suite: the same tests, for longer and from another seed each time.

  NAME         one of: ${Object.keys(suites).join(", ")}
  --seed N     0 to 4294967295; the same seed makes the same choices. Default: a new one, printed
  --minutes N  how long each test goes on, at least 1. Default: 10
  --help       this text

Example: npm run soak -- crash --minutes 30 --seed 42
`;

/**
 * @param {string} flag @param {string | undefined} text @param {{ min: number, max: number }} range
 */
function integer(flag, text, { min, max }) {
  const value = Number(text);
  if (text === undefined || !/^\d+$/.test(text) || value < min || value > max) {
    endWithUsage(usage, `soak: ${flag} needs a whole number from ${min} to ${max}, got ${text}`);
  }
  return value;
}

/** @param {string[]} argv */
function parse(argv) {
  const args = [...argv];
  let seed = Math.floor(Math.random() * 2 ** 32);
  let minutes = 10;
  /** @type {string[]} */
  const names = [];
  while (args.length > 0) {
    const arg = /** @type {string} */ (args.shift());
    if (arg === "--help") {
      endWithUsage(usage);
    } else if (arg === "--seed") {
      seed = integer(arg, args.shift(), { min: 0, max: 2 ** 32 - 1 });
    } else if (arg === "--minutes") {
      minutes = integer(arg, args.shift(), { min: 1, max: 24 * 60 });
    } else if (arg.startsWith("-")) {
      endWithUsage(usage, `soak: unknown option ${JSON.stringify(arg)}`);
    } else {
      names.push(arg);
    }
  }
  return { seed, minutes, names };
}

const { seed, minutes, names } = parse(process.argv.slice(2));
const [name, ...rest] = names;
if (name === undefined || rest.length > 0) {
  endWithUsage(usage, `soak: needs one name, got ${names.length}`);
}
const path = Object.entries(suites).find(([suite]) => suite === name)?.[1];
if (path === undefined) {
  endWithUsage(usage, `soak: unknown name ${JSON.stringify(name)}`);
}
process.env["FOREBAY_SOAK"] = "1";
process.env["FOREBAY_SEED"] = String(seed);
process.env["FOREBAY_SOAK_MINUTES"] = String(minutes);
console.log(`soak: ${name} for ${minutes} min, seed ${seed}`);
process.exit(await runTests([path]));
