import { expect, test } from "vitest";
import {
  cycles,
  doorless,
  folderNode,
  importsOf,
  importsOfSource,
  sideDoors,
  wrongLayers,
  wrongParts,
} from "./tidy/imports.ts";
import { copiesOf, registryHosts, strayTopLevel, unpinned } from "./tidy/packages.ts";
import { codeOnly, withoutComments } from "./tidy/scan.ts";
import {
  bannedCalls,
  emptyNames,
  leftovers,
  machineBound,
  silencedCompiler,
  tooLong,
} from "./tidy/text.ts";
import { readTree, type TreeFile } from "./tidy/tree.ts";

/**
 * The style guide as a test. Each check is a pure function over the files; it is first shown a bad
 * example, so that it is known to be able to fail, and then the tree, where it must find nothing.
 */

/** Longer than the rest may be (path → lines). This list may only shrink. */
const longFiles: Readonly<Record<string, number>> = {};

const tree = readTree();
const paths = tree.map((file) => file.path);
const imports = importsOfSource(tree);

const textOf = (path: string): string => {
  const file = tree.find((each) => each.path === path);
  expect(file, `${path} is missing`).toBeDefined();
  return file?.text ?? "";
};

/** One made-up file, and its imports. */
const file = (path: string, text: string): TreeFile => ({ path, text });
const importing = (from: string, to: string) =>
  importsOf(file(from, `import { x } from "${to}";\n`));

test("the tree was read", () => {
  expect(paths).toContain("package.json");
  expect(paths).toContain("shared/limits.ts");
  expect(imports.length).toBeGreaterThan(10);
  expect(paths.filter((path) => path.startsWith("node_modules/"))).toEqual([]);
});

test("the scanner tells code from comments, strings, templates and regular expressions", () => {
  const text = 'a("b // c"); // d\nconst r = /"[/]/g; `e${f(`g`)}h`; /* i */ j / k;\n';
  expect(withoutComments(text)).toBe(
    'a("b // c");     \nconst r = /"[/]/g; `e${f(`g`)}h`;         j / k;\n',
  );
  expect(codeOnly(text)).toBe(
    "a(        );     \nconst r =       g; ` ${f(` `)} `;         j / k;\n",
  );
});

test("imports are found in every form and in no comment", () => {
  const text = [
    'import type { A } from "./a.ts";',
    'import {\n  b,\n  c,\n} from "../b/mod.ts";',
    'export { d } from "./d.ts";',
    'export * from "node:path";',
    'import "./e.ts";',
    'const f = await import("hono");',
    '// import "./g.ts";',
    "const h = 'from \"./h.ts\"';",
  ].join("\n");
  expect(importsOf(file("edge/x/y.ts", text)).map(({ to }) => to)).toEqual([
    "edge/x/a.ts",
    "edge/b/mod.ts",
    "edge/x/d.ts",
    "node:path",
    "edge/x/e.ts",
    "hono",
  ]);
});

test("the sides meet only in shared, and shared knows no runtime", () => {
  expect(wrongParts(importing("shared/ids/a.ts", "node:crypto"))).toHaveLength(1);
  expect(wrongParts(importing("shared/ids/a.ts", "cloudflare:workers"))).toHaveLength(1);
  expect(wrongParts(importing("shared/ids/a.ts", "../../edge/worker.ts"))).toHaveLength(1);
  expect(wrongParts(importing("edge/routes/a.ts", "../../origin/main.ts"))).toHaveLength(1);
  expect(wrongParts(importing("edge/routes/a.ts", "node:fs"))).toHaveLength(1);
  expect(wrongParts(importing("edge/routes/a.ts", "undici"))).toHaveLength(1);
  expect(wrongParts(importing("origin/main.ts", "../edge/worker.ts"))).toHaveLength(1);
  expect(wrongParts(importing("origin/main.ts", "cloudflare:workers"))).toHaveLength(1);
  expect(wrongParts(importing("origin/main.ts", "../test/tidy/tree.ts"))).toHaveLength(1);
  expect(wrongParts(importing("edge/routes/a.ts", "../../shared/ids/mod.ts"))).toEqual([]);
  expect(wrongParts(imports)).toEqual([]);
});

test("imports go downwards through the layers", () => {
  expect(wrongLayers(importing("origin/journal/a.ts", "../stream/mod.ts"))).toHaveLength(1);
  expect(wrongLayers(importing("origin/journal/a.ts", "../store/mod.ts"))).toHaveLength(1);
  expect(wrongLayers(importing("origin/stream/a.ts", "../main.ts"))).toHaveLength(1);
  expect(wrongLayers(importing("edge/uplink/a.ts", "../batcher/mod.ts"))).toHaveLength(1);
  expect(wrongLayers(importing("edge/unheard/a.ts", "../ports/mod.ts"))).toHaveLength(1);
  expect(wrongLayers(importing("origin/gateway/a.ts", "../stream/mod.ts"))).toEqual([]);
  expect(wrongLayers(imports)).toEqual([]);
});

test("another folder is entered by its door", () => {
  expect(sideDoors(importing("edge/routes/a.ts", "../batcher/lane.ts"))).toHaveLength(1);
  expect(sideDoors(importing("edge/worker.ts", "./batcher/lane.ts"))).toHaveLength(1);
  expect(sideDoors(importing("edge/routes/a.ts", "../batcher/in/mod.ts"))).toHaveLength(1);
  expect(sideDoors(importing("edge/routes/in/a.ts", "../b.ts"))).toEqual([]);
  expect(sideDoors(importing("edge/routes/a.ts", "../batcher/mod.ts"))).toEqual([]);
  expect(sideDoors(importing("edge/routes/a.ts", "../../shared/limits.ts"))).toEqual([]);
  expect(sideDoors(imports)).toEqual([]);
});

test("every folder has a door", () => {
  expect(doorless(["shared/x/y.ts"])).toEqual(["shared/x has no mod.ts"]);
  expect(doorless(["shared/x/y.ts", "shared/x/mod.ts", "shared/limits.ts"])).toEqual([]);
  expect(doorless(paths)).toEqual([]);
});

test("no import cycles, neither of files nor of folders", () => {
  const files = [
    ...importing("shared/a/mod.ts", "./b.ts"),
    ...importing("shared/a/b.ts", "../c/mod.ts"),
    ...importing("shared/c/mod.ts", "./d.ts"),
    ...importing("shared/e/mod.ts", "../a/mod.ts"),
  ];
  expect(cycles(files)).toEqual([]);
  expect(cycles([...files, ...importing("shared/c/d.ts", "../a/mod.ts")])).toEqual([
    "shared/a/mod.ts → shared/a/b.ts → shared/c/mod.ts → shared/c/d.ts → shared/a/mod.ts",
  ]);
  expect(cycles([...files, ...importing("shared/c/f.ts", "../e/mod.ts")], folderNode)).toEqual([
    "shared/a → shared/c → shared/e → shared/a",
  ]);
  expect(cycles(imports)).toEqual([]);
  expect(cycles(imports, folderNode)).toEqual([]);
});

test("time, chance and files come from ports", () => {
  const bad = [
    "Date.now();",
    "new Date();",
    "performance.now();",
    "Math.random();",
    "setTimeout(f, 1);",
    "setInterval(f, 1);",
    'import { open } from "node:fs/promises";',
    'import { setTimeout } from "node:timers/promises";',
  ];
  for (const line of bad) {
    expect(bannedCalls([file("origin/stream/a.ts", line)]), line).not.toEqual([]);
  }
  expect(bannedCalls([file("origin/ports/a.ts", "Date.now(); setTimeout(f, 1);")])).toEqual([]);
  expect(bannedCalls([file("origin/stream/a.ts", "clock.setTimeout(f); // Date.now()")])).toEqual(
    [],
  );
  expect(bannedCalls([file("origin/storage/a.ts", 'import fs from "node:fs";')])).toEqual([]);
  expect(bannedCalls(tree)).toEqual([]);
});

test("names say what they name", () => {
  const badWord = ["hel", "pers"].join("");
  expect(emptyNames([file(`edge/${badWord}/mod.ts`, "")])).toHaveLength(1);
  expect(emptyNames([file("edge/a.ts", `const read${badWord} = 1; // ${badWord}`)])).toEqual([]);
  expect(emptyNames([file("edge/a.ts", `function read_${badWord}() {}`)])).toHaveLength(1);
  expect(emptyNames(tree)).toEqual([]);
});

test("nothing is left over in comments", () => {
  const mark = ["TO", "DO"].join("");
  expect(leftovers([file("edge/a.ts", `\n// ${mark}: later`)])).toEqual([
    `edge/a.ts:2 says ${mark}; open an issue instead`,
  ]);
  expect(leftovers(tree)).toEqual([]);
});

test("no path of one machine", () => {
  const path = ["", "ro" + "ot", "x"].join("/");
  expect(machineBound([file("test/a.ts", `"${path}"`)])).toHaveLength(1);
  expect(machineBound(tree)).toEqual([]);
});

test("the compiler is not silenced", () => {
  expect(silencedCompiler([file("edge/a.ts", "// @ts-expect-error")])).toHaveLength(1);
  expect(silencedCompiler(tree)).toEqual([]);
});

test("files are short, and the list of exceptions only shrinks", () => {
  const long = file("edge/a.ts", "x;\n".repeat(360));
  expect(tooLong([long], {})).toEqual(["edge/a.ts has 360 lines, at most 350: split it"]);
  expect(tooLong([long], { "edge/a.ts": 360 })).toEqual([]);
  expect(tooLong([long], { "edge/a.ts": 355 })).toHaveLength(1);
  expect(tooLong([file("edge/a.ts", "x;\n")], { "edge/a.ts": 360 })).toEqual([
    "edge/a.ts needs no exception any more: take it off the list",
  ]);
  expect(tooLong([], { "edge/gone.ts": 360 })).toHaveLength(1);
  expect(tooLong(tree, longFiles)).toEqual([]);
});

test("the top level is fixed", () => {
  expect(strayTopLevel(["src/a.ts"])).toEqual(["src has no place at the top level"]);
  expect(strayTopLevel(paths)).toEqual([]);
});

test("packages are pinned, come from no named registry, and there is one workerd", () => {
  const loose = {
    dependencies: { a: "^1.0.0" },
    devDependencies: { b: "latest", c: "1.2.3-rc.1" },
  };
  expect(unpinned(JSON.stringify(loose))).toEqual([
    "a is not pinned: ^1.0.0",
    "b is not pinned: latest",
  ]);
  expect(unpinned(textOf("package.json"))).toEqual([]);

  const entry = { resolved: "https://registry.example/a.tgz" };
  const lock = { packages: { "node_modules/a": entry, "node_modules/b/node_modules/a": {} } };
  expect(registryHosts(JSON.stringify(lock))).toHaveLength(1);
  expect(copiesOf("a", JSON.stringify(lock))).toHaveLength(2);
  expect(registryHosts(textOf("package-lock.json"))).toEqual([]);
  expect(copiesOf("workerd", textOf("package-lock.json"))).toEqual(["node_modules/workerd"]);
});
