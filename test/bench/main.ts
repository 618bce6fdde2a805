/** `npm run bench -- NAME`: prints a table and, last, one JSON line. */
import { benchAppend } from "./append.ts";
import { benchCommit } from "./commit.ts";

const benches: Record<string, { readonly what: string; run(): Promise<void> }> = {
  append: {
    what: "durable 256-byte appends against the npm reference server, in memory and file-backed (~3 min)",
    run: benchAppend,
  },
  commit: {
    what: "the journal's commits against fio, Node's file calls, other backends and memory (~7 min)",
    run: benchCommit,
  },
};

const [name] = process.argv.slice(2);
const bench = name === undefined ? undefined : benches[name];
if (bench === undefined) {
  const wanted = name === undefined || name === "--help" || name === "-h";
  const list = Object.entries(benches).map(([key, { what }]) => `  ${key.padEnd(10)} ${what}`);
  const unknown = wanted ? "" : `There is no benchmark named ${JSON.stringify(name)}.\n\n`;
  console.log(`${unknown}Usage: npm run bench -- NAME\n\n${list.join("\n")}`);
  process.exitCode = wanted ? 0 : 64;
} else {
  await bench.run();
}
