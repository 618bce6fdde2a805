import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { ForebayError } from "../../shared/errors/mod.ts";
import { clock } from "../ports/mod.ts";
import { openEdgeState, type EdgeState } from "./edgeState.ts";

export interface EdgeOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly originUrl: string;
  readonly key: string | null;
  readonly region: string;
  /** Beside pages served from this machine. */
  readonly allowedOrigins: readonly string[];
  /** Absolute; the edge keeps its outboxes in `edge/` below it. */
  readonly dataDir: string;
  /** Have the runtime tell each request, and what else it does, as `debug` lines. */
  readonly verbose: boolean;
  /** Each line that the runtime prints: `error` what belongs on a screen, `debug` the rest. */
  readonly onLine: (level: "error" | "debug", line: string) => void;
  /** Gives up the start. */
  readonly signal?: AbortSignal;
}

export interface RunningEdge {
  readonly url: string;
  /** Leader of the edge's own process group. */
  readonly pid: number;
  /** Resolves when the edge has ended, asked or not, with how and its last words. */
  readonly ended: Promise<EdgeEnd>;
  /** Asks it to end, insists after 5 s, and resolves when no process of it is left. */
  stop(): Promise<void>;
  /** Ends it now. */
  kill(): void;
}

export interface EdgeEnd {
  readonly how: string;
  readonly lastLines: readonly string[];
}

/** wrangler waits for ever for somebody to mend code that does not build. */
const startMsMax = 60_000;
const stopMsMax = 5000;
const lastLinesMax = 20;
const treeRoot = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Starts the Worker under wrangler's local runtime, in a process group of its own, so that Ctrl-C reaches only us
 * and we decide the order of ending, and so that nothing of it can be missed when it ends.
 *
 * @throws ForebayError `edge_failed`, `data_locked`, `data_unwritable`
 */
export async function launchEdge(options: EdgeOptions): Promise<RunningEdge> {
  const wrangler = wranglerScript();
  const state = openEdgeState(options.dataDir, bindingsOf(options));
  const child = spawn(process.execPath, edgeArguments(wrangler, options, state), {
    cwd: treeRoot,
    detached: true,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    env: edgeEnvironment(state),
  });
  const lastLines = collectLines(child, options.onLine);
  const ended = endOf(child, state, lastLines);
  const { pid } = child;
  if (pid === undefined) {
    throw new ForebayError("edge_failed", `the edge did not start: ${(await ended).how}`);
  }
  state.remember(pid);
  const kill = (): void => killGroup(pid);
  const deadline = clock.after(startMsMax, kill);
  options.signal?.addEventListener("abort", kill, { once: true });
  const port = await Promise.race([readyPort(child), ended]);
  options.signal?.removeEventListener("abort", kill);
  deadline.cancel();
  if (typeof port !== "number") {
    throw new ForebayError("edge_failed", endText("the edge did not start", port));
  }
  return {
    url: `http://${hostInUrl(options.host)}:${port}`,
    pid,
    ended,
    stop: () => stop(child, ended, kill),
    kill,
  };
}

/** One sentence and the last words below it. */
export function endText(what: string, end: EdgeEnd): string {
  return [`${what}: ${end.how}`, ...end.lastLines].join("\n  ");
}

function bindingsOf(options: EdgeOptions): Record<string, string> {
  return {
    ORIGIN_URL: options.originUrl,
    REGION: options.region,
    FOREBAY_ORIGINS: ["loopback", ...options.allowedOrigins].join(","),
    ...(options.key === null ? {} : { FOREBAY_KEY: options.key }),
  };
}

/** wrangler's own script: its launcher would only put one more process between us and it. */
function wranglerScript(): string {
  try {
    const manifest = createRequire(import.meta.url).resolve("wrangler/package.json");
    return join(dirname(manifest), "wrangler-dist", "cli.js");
  } catch (cause) {
    throw new ForebayError(
      "edge_failed",
      "wrangler, which runs the edge on this machine, is not installed (npm ci installs it)",
      { cause },
    );
  }
}

function edgeArguments(wrangler: string, options: EdgeOptions, state: EdgeState): string[] {
  const guard = new URL("./edgeGuard.ts", import.meta.url).href;
  return [
    "--no-warnings",
    `--import=${guard}`,
    wrangler,
    "dev",
    `--config=${join(treeRoot, "wrangler.toml")}`,
    `--ip=${options.host}`,
    `--port=${options.port}`,
    "--inspector-port=0",
    "--show-interactive-dev-session=false",
    `--log-level=${options.verbose ? "log" : "warn"}`,
    `--persist-to=${state.persistDir}`,
    // Also keeps a .dev.vars of the tree out.
    `--env-file=${state.bindingsFile}`,
  ];
}

/** Offline, without anything of ours in it, and writing nowhere but below the data directory. */
function edgeEnvironment(state: EdgeState): NodeJS.ProcessEnv {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith("FOREBAY_")),
  );
  return {
    ...env,
    CI: "1",
    NO_COLOR: "1",
    WRANGLER_HIDE_BANNER: "true",
    WRANGLER_SEND_METRICS: "false",
    WRANGLER_CI_DISABLE_CONFIG_WATCHING: "true",
    WRANGLER_WRITE_LOGS: "false",
    WRANGLER_REGISTRY_PATH: state.registryDir,
    CLOUDFLARE_CF_FETCH_ENABLED: "false",
    X_LOCAL_EXPLORER: "false",
    X_LOCAL_OBSERVABILITY: "false",
  };
}

/** The port that wrangler says it listens on, once it does. */
function readyPort(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.on("message", (message) => {
      const said: { event?: unknown; port?: unknown } =
        typeof message === "string" ? JSON.parse(message) : {};
      if (said.event === "DEV_SERVER_READY" && typeof said.port === "number") {
        resolve(said.port);
      }
    });
  });
}

/** Passes on what the runtime prints, and keeps the last lines of it. */
function collectLines(child: ChildProcess, onLine: EdgeOptions["onLine"]): readonly string[] {
  const last: string[] = [];
  const follow = (stream: Readable | null, level: "error" | "debug"): void => {
    if (stream === null) {
      return;
    }
    createInterface({ input: stream }).on("line", (line) => {
      if (line.trim() === "") {
        return;
      }
      last.push(line);
      if (last.length > lastLinesMax) {
        last.shift();
      }
      onLine(level, line);
    });
  };
  follow(child.stdout, "debug");
  follow(child.stderr, "error");
  return last;
}

/** Settles once the process is gone, and then leaves nothing of its group behind. */
function endOf(
  child: ChildProcess,
  state: EdgeState,
  lastLines: readonly string[],
): Promise<EdgeEnd> {
  return new Promise((resolve) => {
    const settle = (how: string): void => {
      if (child.pid !== undefined) {
        killGroup(child.pid);
      }
      state.clear();
      resolve({ how, lastLines });
    };
    child.once("error", (error) => settle(error.message));
    // Not "close": an orphaned workerd holds the pipes open until the group is killed.
    child.once("exit", (code, signal) =>
      settle(signal === null ? `exit code ${code}` : `${signal}`),
    );
  });
}

async function stop(child: ChildProcess, ended: Promise<EdgeEnd>, kill: () => void): Promise<void> {
  child.kill("SIGTERM");
  const deadline = clock.after(stopMsMax, kill);
  await ended;
  deadline.cancel();
  if (child.stdout !== null && !child.stdout.destroyed) {
    // Closes when the last process of the group has let go of it.
    await once(child.stdout, "close");
  }
}

function killGroup(group: number): void {
  try {
    process.kill(-group, "SIGKILL");
  } catch {
    // ESRCH: nothing of it is left.
  }
}

/** An address as it stands in a URL that someone on this machine can open. */
export function hostInUrl(host: string): string {
  if (host === "0.0.0.0") {
    return "127.0.0.1";
  }
  if (host === "::") {
    return "[::1]";
  }
  return host.includes(":") ? `[${host}]` : host;
}
