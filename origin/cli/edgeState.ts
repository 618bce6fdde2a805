import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ForebayError } from "../../shared/errors/mod.ts";

/**
 * What the edge keeps below the data directory:
 *
 *   edge/state/       the outboxes (wrangler's --persist-to)
 *   edge/bindings.env the Worker's variables and the key, mode 0600, while it runs
 *   edge/group        the process group of the running edge
 */
export interface EdgeState {
  readonly persistDir: string;
  readonly bindingsFile: string;
  readonly registryDir: string;
  /** Remembers the process group, so that a later start can name what was left of it. */
  remember(group: number): void;
  /** Forgets group and key. */
  clear(): void;
}

/**
 * Takes `<data>/edge` for one edge. The caller holds the data directory.
 *
 * @param bindings the Worker's variables; a file, because arguments and environment show in process lists
 * @throws ForebayError `data_locked` when an edge of an earlier start survived it; `data_unwritable`
 */
export function openEdgeState(
  dataDir: string,
  bindings: Readonly<Record<string, string>>,
): EdgeState {
  const dir = join(dataDir, "edge");
  const groupFile = join(dir, "group");
  const bindingsFile = join(dir, "bindings.env");
  try {
    mkdirSync(dir, { recursive: true });
    refuseSurvivor(dir, groupFile);
    // A mode is only given to a new file.
    rmSync(bindingsFile, { force: true });
    writeFileSync(bindingsFile, envText(bindings), { mode: 0o600 });
  } catch (cause) {
    if (cause instanceof ForebayError) {
      throw cause;
    }
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ForebayError("data_unwritable", `the edge cannot write below ${dir}: ${why}`, {
      cause,
    });
  }
  return {
    persistDir: join(dir, "state"),
    bindingsFile,
    registryDir: join(dir, "registry"),
    remember: (group) => writeFileSync(groupFile, `${group}\n`),
    clear(): void {
      rmSync(groupFile, { force: true });
      rmSync(bindingsFile, { force: true });
    },
  };
}

/** dotenv: in single quotes everything is literal, and no value here has one (keys are checked for it). */
function envText(bindings: Readonly<Record<string, string>>): string {
  return Object.entries(bindings)
    .map(([name, value]) => `${name}='${value}'\n`)
    .join("");
}

/**
 * Two runtimes on the same outboxes would corrupt them. `forebay start` takes its edge with it even when it is
 * killed; only a kill of both leaves workerd behind.
 */
function refuseSurvivor(dir: string, groupFile: string): void {
  const group = Number(readIfThere(groupFile));
  if (!Number.isInteger(group) || group <= 1) {
    return;
  }
  const survivors = workersOf(group);
  if (survivors.length > 0) {
    throw new ForebayError(
      "data_locked",
      `an edge of an earlier start still runs on ${dir} (workerd, process ${survivors.join(", ")}); end it with: kill -- -${group}`,
    );
  }
}

/** Ids of the workerd processes of a process group, by Linux's /proc; none elsewhere. */
function workersOf(group: number): number[] {
  const pids =
    process.platform === "linux" ? readdirSync("/proc").filter((name) => /^\d+$/.test(name)) : [];
  return pids.map(Number).filter((pid) => {
    // pid (name) state parent group …
    const m = /^\d+ \((.*)\) (\S) \d+ (\d+) /s.exec(readIfThere(`/proc/${pid}/stat`));
    return m?.[1] === "workerd" && m[2] !== "Z" && Number(m[3]) === group;
  });
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
