/** `npm run bench -- NAME`: prints a table and, last, one JSON line. */
import { benchAppend } from "./append.ts";
import { benchSse } from "./sse.ts";
import { benchToken } from "./token.ts";
import { benchCommit } from "./commit.ts";

const benches: Record<string, { readonly what: string; run(): Promise<void> }> = {
  append: {
    what: "durable 256-byte appends against the npm reference server, in memory and file-backed (~6 min)",
    run: benchAppend,
  },
  sse: {
    what: "one writer, 10 to 2000 SSE readers, against the npm reference server (~5 min)",
    run: benchSse,
  },
  token: {
    what: "appends of 16 bytes, one at a time, against a bare commit and a round trip (~2 min)",
    run: benchToken,
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
  console.log(`${unknown}Usage: npm run bench -- NAME [--rounds N]\n\n${list.join("\n")}`);
  process.exitCode = wanted ? 0 : 64;
} else {
  await bench.run();
}
