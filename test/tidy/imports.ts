import { posix } from "node:path";
import { withoutComments } from "./scan.ts";
import { isSource, partOf, type TreeFile } from "./tree.ts";

/** `from` imports `to`: a path in the tree, or a package or built-in module as it is written. */
export interface Import {
  readonly from: string;
  readonly to: string;
}

const specifier =
  /(?:\b(?:import|export)\s[^"';]*?\sfrom\s*|\bimport\s*\(?\s*)(?:"([^"\n]+)"|'([^'\n]+)')/g;

export function importsOf(file: TreeFile): Import[] {
  const code = withoutComments(file.text);
  return [...code.matchAll(specifier)].map((match) => {
    const written = match[1] ?? match[2] ?? "";
    const to = written.startsWith(".") ? posix.join(posix.dirname(file.path), written) : written;
    return { from: file.path, to };
  });
}

/** All imports of the parts that ship. */
export const importsOfSource = (files: readonly TreeFile[]): Import[] =>
  files.filter((file) => isSource(file.path)).flatMap(importsOf);

/** Other packages than these have no place in a part. `origin` may use any. */
const packagesOf: Record<string, readonly RegExp[]> = {
  shared: [/^@msgpack\/msgpack$/],
  edge: [/^@msgpack\/msgpack$/, /^hono(?:\/|$)/, /^cloudflare:workers$/, /^jose$/],
  origin: [/^(?!cloudflare:)/],
};

const partsOf: Record<string, readonly string[]> = {
  shared: ["shared"],
  edge: ["edge", "shared"],
  origin: ["origin", "shared"],
};

const isInTree = (to: string): boolean => isSource(to) || /^(?:test|\.scripts)\//.test(to);

/** shared imports nothing of a runtime; edge and origin meet only in shared. */
export function wrongParts(imports: readonly Import[]): string[] {
  return imports
    .filter(({ from, to }) => {
      const part = partOf(from);
      return isInTree(to)
        ? !(partsOf[part] ?? []).includes(partOf(to))
        : !(packagesOf[part] ?? []).some((allowed) => allowed.test(to));
    })
    .map(({ from, to }) => `${from} may not import ${to}`);
}

/**
 * Who stands above whom. A folder (or a file at a part's root) imports only what stands lower, so
 * two of the same height know nothing of each other.
 */
const heights: Record<string, number> = {
  "origin/native": 0,
  "origin/ports": 1,
  "origin/front": 1,
  "origin/config": 1,
  "origin/storage": 2,
  "origin/journal": 3,
  "origin/store": 3,
  "origin/stream": 4,
  "origin/consume": 5,
  "origin/subscription": 5,
  "origin/gateway": 6,
  "origin/main.ts": 7,
  "origin/cli": 8,

  "edge/ports": 0,
  "edge/uplink": 1,
  "edge/outbox": 2,
  "edge/reader": 2,
  "edge/batcher": 3,
  "edge/routes": 4,
  "edge/worker.ts": 5,
};

const placeOf = (path: string): string => path.split("/").slice(0, 2).join("/");

/** The layers inside edge and inside origin. */
export function wrongLayers(imports: readonly Import[]): string[] {
  return imports.flatMap(({ from, to }) => {
    const [upper, lower] = [placeOf(from), placeOf(to)];
    if (partOf(from) === "shared" || partOf(from) !== partOf(to) || upper === lower) {
      return [];
    }
    const unknown = [upper, lower].find((place) => heights[place] === undefined);
    if (unknown !== undefined) {
      return [`${unknown} has no height in test/tidy/imports.ts`];
    }
    const rises = (heights[lower] ?? 0) >= (heights[upper] ?? 0);
    return rises ? [`${from} imports upwards: ${to}`] : [];
  });
}

/** A door: mod.ts of a part's folder, or a file directly at a part's root. */
const isDoor = (path: string): boolean => /^\w+\/(?:[^/]+|[^/]+\/mod\.ts)$/.test(path);

/** Another folder is entered only by its door. What lies deeper inside a folder is its own affair. */
export function sideDoors(imports: readonly Import[]): string[] {
  return imports
    .filter(({ from, to }) => isSource(to) && placeOf(from) !== placeOf(to) && !isDoor(to))
    .map(({ from, to }) => `${from} imports ${to}: enter by ${placeOf(to)}/mod.ts`);
}

/** Folders without a door. The command line is where everything begins, nobody enters it. */
export function doorless(paths: readonly string[]): string[] {
  const folders = new Set(
    paths
      .filter((path) => isSource(path) && path.split("/").length > 2)
      .map(placeOf)
      .filter((folder) => folder !== "origin/cli"),
  );
  return [...folders]
    .filter((folder) => !paths.includes(`${folder}/mod.ts`))
    .map((folder) => `${folder} has no mod.ts`);
}

/** The cycles of a graph, each once, written `a → b → a`. */
function cyclesOf(edges: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const visit = (node: string, path: readonly string[]): void => {
    if (path.includes(node)) {
      found.push([...path.slice(path.indexOf(node)), node].join(" → "));
      return;
    }
    if (done.has(node)) {
      return;
    }
    for (const next of edges.get(node) ?? []) {
      visit(next, [...path, node]);
    }
    done.add(node);
  };
  for (const node of edges.keys()) {
    visit(node, []);
  }
  return found;
}

/** Import cycles between files (`nameOf` the path itself) or between folders. */
export function cycles(
  imports: readonly Import[],
  nameOf: (path: string) => string = (path) => path,
): string[] {
  const edges = new Map<string, Set<string>>();
  for (const { from, to } of imports.filter((each) => isSource(each.to))) {
    const [a, b] = [nameOf(from), nameOf(to)];
    const known = edges.get(a) ?? new Set();
    edges.set(a, known);
    // A folder importing itself is its own affair; a file importing itself is a cycle.
    if (a !== b || from === to) {
      known.add(b);
    }
  }
  return cyclesOf(edges);
}

/** Folder → itself, a file at a part's root → itself. */
export const folderNode = placeOf;
