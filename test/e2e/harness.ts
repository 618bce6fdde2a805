import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { launchEdge } from "../../origin/cli/mod.ts";

/**
 * Real processes for the tests that need them: an origin as `forebay start --no-edge` runs it, and the Worker under
 * wrangler's local runtime as `forebay start` runs it. Each on a port of its own with a data directory of its own.
 */
const cli = fileURLToPath(new URL("../../origin/cli/main.ts", import.meta.url));

export interface OriginOptions {
  /** An earlier one's, to start on its data again; a temporary one otherwise. */
  readonly dataDir?: string;
  /** An earlier one's, so that the edge finds it again; a free one otherwise. */
  readonly port?: number;
  readonly key?: string;
  /** More flags of `forebay start`, e.g. `["--long-poll-ms", "500"]`. */
  readonly flags?: readonly string[];
}

export interface OriginProcess {
  readonly url: string;
  readonly port: number;
  readonly dataDir: string;
  readonly pid: number;
  /** All it wrote to stderr so far. */
  log(): string;
  /** Ends it as `kill -9` does; resolves when it is gone. */
  crash(): Promise<void>;
  /**
   * Drains and ends it; resolves to its exit code. A temporary data directory is removed. Throws, with its log, when
   * it had already ended by itself.
   */
  stop(): Promise<number>;
}

export async function startOrigin(options: OriginOptions = {}): Promise<OriginProcess> {
  const { dataDir, release } = directory(options.dataDir);
  const started = await startCli(
    ["--no-edge", "--port", String(options.port ?? 0), "--data", dataDir, ...(options.flags ?? [])],
    options.key === undefined ? {} : { FOREBAY_KEY: options.key },
  );
  const url = started.line.origin;
  let crashed = false;
  return {
    url,
    port: Number(new URL(url).port),
    dataDir,
    pid: started.pid,
    log: started.log,
    async crash(): Promise<void> {
      crashed = true;
      started.child.kill("SIGKILL");
      await started.exited;
    },
    async stop(): Promise<number> {
      const { exitCode, signalCode } = started.child;
      if (exitCode !== null || (signalCode !== null && !crashed)) {
        throw new Error(
          `the origin ended by itself (${exitCode ?? signalCode}):\n${started.log()}`,
        );
      }
      started.child.kill("SIGTERM");
      const code = await started.exited;
      release();
      return code;
    },
  };
}

export interface EdgeOptions {
  readonly originUrl: string;
  readonly key?: string;
  /** Keeps outboxes over restarts; a temporary one otherwise. */
  readonly dataDir?: string;
  readonly port?: number;
  readonly region?: string;
  readonly allowedOrigins?: readonly string[];
}

export interface EdgeProcess {
  readonly url: string;
  readonly dataDir: string;
  /** Leader of the edge's process group. */
  readonly pid: number;
  /** The warnings and errors that the runtime printed so far. */
  log(): string;
  /** Ends the whole group as `kill -9` does. */
  crash(): Promise<void>;
  stop(): Promise<void>;
}

export async function startEdge(options: EdgeOptions): Promise<EdgeProcess> {
  const { dataDir, release } = directory(options.dataDir);
  let printed = "";
  const edge = await launchEdge({
    host: "127.0.0.1",
    port: options.port ?? 0,
    originUrl: options.originUrl,
    key: options.key ?? null,
    region: options.region ?? "local",
    allowedOrigins: options.allowedOrigins ?? [],
    dataDir,
    verbose: false,
    onLine: (level, line) => {
      printed += `${level}: ${line}\n`;
    },
  });
  return {
    url: edge.url,
    dataDir,
    pid: edge.pid,
    log: () => printed,
    async crash(): Promise<void> {
      edge.kill();
      await edge.ended;
    },
    async stop(): Promise<void> {
      await edge.stop();
      release();
    },
  };
}

export interface StartedCli {
  readonly child: ChildProcess;
  readonly pid: number;
  /** What `forebay start --json` printed. */
  readonly line: {
    readonly origin: string;
    readonly edge: string | null;
    readonly edgePid: number | null;
  };
  readonly exited: Promise<number>;
  log(): string;
}

/** `forebay start --json <flags>`, once it has said where it listens; throws with its stderr if it ends before. */
export async function startCli(
  flags: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<StartedCli> {
  const child = spawn(process.execPath, [cli, "start", "--json", ...flags], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...cleanEnvironment(), ...env },
  });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const exited = once(child, "exit").then(([code]) => (code as number | null) ?? 128);
  const lines = createInterface({ input: child.stdout });
  const first = await Promise.race([
    once(lines, "line").then(([line]) => String(line)),
    exited.then((code) => Promise.reject(new Error(`forebay ended with ${code}: ${stderr}`))),
  ]);
  if (child.pid === undefined) {
    throw new Error("forebay has no pid");
  }
  return { child, pid: child.pid, line: JSON.parse(first), exited, log: () => stderr };
}

/** Our own environment without settings of the one who runs the tests. */
export function cleanEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith("FOREBAY_")),
  );
}

function directory(given: string | undefined): { dataDir: string; release(): void } {
  if (given !== undefined) {
    return { dataDir: given, release() {} };
  }
  const dataDir = mkdtempSync(join(tmpdir(), "forebay-e2e-"));
  return { dataDir, release: () => rmSync(dataDir, { recursive: true, force: true }) };
}
