/** What package.json and package-lock.json must hold to. */

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

interface LockFile {
  readonly packages: Readonly<Record<string, { readonly resolved?: string }>>;
}

/** A version is one version: no range, no tag, no address. */
export function unpinned(manifest: string): string[] {
  const { dependencies, devDependencies }: Manifest = JSON.parse(manifest);
  return Object.entries({ ...dependencies, ...devDependencies })
    .filter(([, version]) => !/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version))
    .map(([name, version]) => `${name} is not pinned: ${version}`);
}

/** The lock file holds on any registry: versions and hashes, no addresses. */
export function registryHosts(lockFile: string): string[] {
  const { packages }: LockFile = JSON.parse(lockFile);
  return Object.entries(packages)
    .filter(([, entry]) => /^[a-z+]+:\/\//.test(entry.resolved ?? ""))
    .map(([name]) => `${name} names the registry it came from`);
}

/** Packages of this name, nested ones too: two workerds are 200 MB too many and run apart. */
export function copiesOf(name: string, lockFile: string): string[] {
  const { packages }: LockFile = JSON.parse(lockFile);
  return Object.keys(packages).filter((path) => path.endsWith(`node_modules/${name}`));
}

const topLevel = new Set([
  "edge",
  "origin",
  "shared",
  "test",
  "wrangler.toml",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "README.md",
  "LICENSE",
]);

/** The top level is fixed; what is only for tools begins with a dot. */
export function strayTopLevel(paths: readonly string[]): string[] {
  const entries = new Set(paths.map((path) => path.split("/")[0] ?? ""));
  return [...entries]
    .filter((entry) => !topLevel.has(entry) && !entry.startsWith("."))
    .map((entry) => `${entry} has no place at the top level`);
}
