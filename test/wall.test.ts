import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { root } from "./tidy/tree.ts";

/**
 * The wall between the sides is the project references of the tsconfig files. Here they are copied
 * beside a few small files, most of them wrong, and the compiler must say so of exactly those.
 */
const files: Record<string, string> = {
  "shared/good.ts": "export const one: number = 1;\n",
  "shared/toEdge.ts": 'export { good } from "../edge/good.ts";\n',
  "shared/toOrigin.ts": 'export { good } from "../origin/good.ts";\n',
  "shared/buffer.ts": 'export const bytes: Uint8Array = Buffer.from("x");\n',
  "shared/fetch.ts": 'export const answer: unknown = fetch("http://x/");\n',
  "shared/node.ts": 'export { join } from "node:path";\n',
  "edge/good.ts":
    'import { DurableObject } from "cloudflare:workers";\nimport { one } from "../shared/good.ts";\n' +
    "export class Good extends DurableObject {}\nexport const good: Response = new Response(`${one}`);\n",
  "edge/toOrigin.ts": 'export { good } from "../origin/good.ts";\n',
  "edge/fs.ts": 'export { readFile } from "node:fs";\n',
  "origin/good.ts":
    'import { readFileSync } from "node:fs";\nimport { one } from "../shared/good.ts";\n' +
    "export const good: string = readFileSync(`${one}`).toString();\n",
  "origin/toEdge.ts": 'export { good } from "../edge/good.ts";\n',
  "origin/workers.ts": 'export { DurableObject } from "cloudflare:workers";\n',
};

const configs = ["package.json", "tsconfig.json"].concat(
  ["shared", "edge", "origin"].map((part) => `${part}/tsconfig.json`),
);

let dir = "";

function write(paths: readonly string[]): void {
  for (const path of paths) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), files[path] ?? "");
  }
}

/** What the compiler prints: nothing when all is well. */
function compile(): string {
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const args = [tsc, "-b", "shared", "edge", "origin", "--pretty", "false"];
  return spawnSync(process.execPath, args, { cwd: dir, encoding: "utf8" }).stdout;
}

let goodAlone = "not compiled";
/** File → the codes of the compiler's complaints about it. */
const complaints: Record<string, string[]> = {};

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "forebay-wall-"));
  const isGood = (path: string): boolean => path.endsWith("/good.ts");
  write(Object.keys(files).filter(isGood));
  for (const path of configs) {
    cpSync(join(root, path), join(dir, path));
  }
  symlinkSync(join(root, "node_modules"), join(dir, "node_modules"));
  goodAlone = compile();
  write(Object.keys(files));
  for (const [, path = "", code = ""] of compile().matchAll(
    /^([\w/.]+)\(\d+,\d+\): error (TS\d+)/gm,
  )) {
    complaints[path] = [...(complaints[path] ?? []), code];
  }
});

afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** TS6307: not listed in the project. TS2591, TS2307, TS2304: no such module or name here. */
test.each([
  ["shared/toEdge.ts", /TS6307/],
  ["shared/toOrigin.ts", /TS6307/],
  ["shared/buffer.ts", /TS2591|TS2304|TS2580/],
  ["shared/fetch.ts", /TS2304|TS2584/],
  ["shared/node.ts", /TS2591|TS2307/],
  ["edge/toOrigin.ts", /TS6307/],
  ["edge/fs.ts", /TS2591|TS2307/],
  ["origin/toEdge.ts", /TS6307/],
  ["origin/workers.ts", /TS2307/],
])("%s does not compile", (path, codes) => {
  expect(complaints[path]?.join(" ")).toMatch(codes);
});

test("what keeps to its side compiles", () => {
  expect(goodAlone).toBe("");
});
