import { codeOnly, lineAt, withoutComments } from "./scan.ts";
import { isSource, partOf, type TreeFile } from "./tree.ts";

const place = (file: TreeFile, index: number): string => `${file.path}:${lineAt(file.text, index)}`;

interface Ban {
  readonly what: RegExp;
  readonly name: string;
  /** Where it is allowed: beginnings of paths. */
  readonly home: readonly string[];
  /** Look at the text of strings too. */
  readonly inStrings?: true;
}

const clocks = ["origin/ports/", "edge/ports/"];

/** Time, chance and files come from ports, or no test could decide them. */
const bans: readonly Ban[] = [
  { name: "Date.now", what: /\bDate\s*\.\s*now\b/g, home: clocks },
  { name: "new Date()", what: /\bnew Date\s*\(\s*\)/g, home: clocks },
  { name: "performance.now", what: /\bperformance\s*\.\s*now\b/g, home: clocks },
  { name: "process.hrtime", what: /\bprocess\s*\.\s*hrtime\b/g, home: clocks },
  { name: "Math.random", what: /\bMath\s*\.\s*random\b/g, home: clocks },
  { name: "setTimeout", what: /(?:\bglobalThis\.|(?<![\w.#]))setTimeout\b/g, home: clocks },
  { name: "setInterval", what: /(?:\bglobalThis\.|(?<![\w.#]))setInterval\b/g, home: clocks },
  { name: "node:timers", what: /["']node:timers\b/g, home: clocks, inStrings: true },
  {
    name: "node:fs",
    what: /["']node:fs\b/g,
    home: ["origin/storage/", "origin/cli/", "origin/config/"],
    inStrings: true,
  },
];

export function bannedCalls(files: readonly TreeFile[]): string[] {
  return files
    .filter((file) => isSource(file.path))
    .flatMap((file) => {
      const code = codeOnly(file.text);
      const withStrings = withoutComments(file.text);
      return bans
        .filter(({ home }) => !home.some((start) => file.path.startsWith(start)))
        .flatMap(({ what, name, inStrings }) =>
          [...(inStrings ? withStrings : code).matchAll(what)].map(
            (match) => `${place(file, match.index)} uses ${name}; take it from a port`,
          ),
        );
    });
}

/** Words that name nothing. */
const emptyWords = new Set(["util", "utils", "helper", "helpers", "misc", "common"]);

const wordsOf = (name: string): string[] =>
  name
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/);

const isEmptyName = (name: string): boolean => wordsOf(name).some((word) => emptyWords.has(word));

/** What a reader meets from outside: functions, types, exported values. */
const declaration =
  /\b(?:function|class|interface|type|export const|export let)\s+([A-Za-z_$][\w$]*)/g;

/** Paths and declared names say what they are. */
export function emptyNames(files: readonly TreeFile[]): string[] {
  const paths = files
    .filter((file) => isEmptyName(file.path))
    .map((file) => `${file.path}: the name says nothing`);
  const declared = files
    .filter((file) => /\.(?:ts|mjs)$/.test(file.path))
    .flatMap((file) =>
      [...codeOnly(file.text).matchAll(declaration)]
        .filter((match) => isEmptyName(match[1] ?? ""))
        .map((match) => `${place(file, match.index)} ${match[1]}: the name says nothing`),
    );
  return [...paths, ...declared];
}

/** Split, so that this file does not hold what it looks for. */
const marks = new RegExp(`\\b(?:${["TO" + "DO", "FIX" + "ME", "XX" + "X"].join("|")})\\b`, "g");

/** Work that is left over belongs in an issue. */
export function leftovers(files: readonly TreeFile[]): string[] {
  return files
    .filter((file) => file.path !== "package-lock.json")
    .flatMap((file) =>
      [...file.text.matchAll(marks)].map(
        (match) => `${place(file, match.index)} says ${match[0]}; open an issue instead`,
      ),
    );
}

const machinePaths = new RegExp(`(?<![\\w.])/(?:${["wo" + "rk", "ro" + "ot"].join("|")})/`, "g");

/** Paths of one machine. */
export function machineBound(files: readonly TreeFile[]): string[] {
  return files.flatMap((file) =>
    [...file.text.matchAll(machinePaths)].map(
      (match) => `${place(file, match.index)} names a path of one machine: ${match[0]}`,
    ),
  );
}

const silenced = /@ts-(?:ignore|nocheck|expect-error)/g;

/** The compiler is silenced nowhere in what ships. */
export function silencedCompiler(files: readonly TreeFile[]): string[] {
  return files
    .filter((file) => isSource(file.path))
    .flatMap((file) =>
      [...file.text.matchAll(silenced)].map(
        (match) => `${place(file, match.index)} silences the compiler: ${match[0]}`,
      ),
    );
}

const linesMaxOf = (path: string): number | undefined => {
  if (!/\.(?:ts|mjs|c|h)$/.test(path)) {
    return undefined;
  }
  return partOf(path) === "test" ? 600 : 350;
};

const linesOf = (text: string): number => text.split("\n").length - (text.endsWith("\n") ? 1 : 0);

/**
 * Files that are too long. `exceptions` (path → lines) may only shrink: a file may not outgrow its
 * entry, and an entry that is no longer needed has to go.
 */
export function tooLong(
  files: readonly TreeFile[],
  exceptions: Readonly<Record<string, number>>,
): string[] {
  const tooBig = files.flatMap(({ path, text }) => {
    const max = Math.max(linesMaxOf(path) ?? Infinity, exceptions[path] ?? 0);
    const lines = linesOf(text);
    return lines > max ? [`${path} has ${lines} lines, at most ${max}: split it`] : [];
  });
  const unneeded = Object.keys(exceptions).flatMap((path) => {
    const file = files.find((each) => each.path === path);
    const needed = file !== undefined && linesOf(file.text) > (linesMaxOf(path) ?? Infinity);
    return needed ? [] : [`${path} needs no exception any more: take it off the list`];
  });
  return [...tooBig, ...unneeded];
}
