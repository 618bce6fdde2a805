import { flushCompileCache } from "node:module";
import { ForebayError } from "../../shared/errors/mod.ts";
import { originConfig, type OriginConfig, type Resolved } from "../config/mod.ts";
import { banner } from "./banner.ts";
import { endText, hostInUrl, launchEdge, type EdgeOptions, type RunningEdge } from "./edge.ts";
import { aborted, listenForInterrupt, type Interrupt } from "./interrupt.ts";
import { untilLive } from "./live.ts";
import { checkFree } from "./portCheck.ts";
import { printLine, remark, type Terminal } from "./terminal.ts";

/** Exit code of an end that was insisted on. */
const forcedExit = 130;

/**
 * `forebay start`: the origin in this process and, unless told otherwise, the edge in another, until a signal.
 * Then the edge ends first (what the origin has not acknowledged stays in its outbox on disk) and the origin drains.
 *
 * @throws ForebayError of the start; `edge_failed` when the edge ends unasked
 */
export async function start(resolved: Resolved, json: boolean, terminal: Terminal): Promise<void> {
  const config = originConfig(resolved, terminal.cwd);
  const { values } = resolved;
  let edge: RunningEdge | null = null;
  const interrupt = listenForInterrupt(() => {
    edge?.kill();
    process.exit(forcedExit);
  });
  await checkFree("origin", config.host, config.port);
  if (values.edge) {
    await checkFree("edge", values.edgeHost, values.edgePort);
  }
  // Loaded here, so that the other commands start without it.
  const { startOrigin } = await import("../main.ts");
  flushCompileCache();
  const origin = await startOrigin(config);
  try {
    const originUrl = `http://${hostInUrl(config.host)}:${origin.port}`;
    edge = values.edge
      ? await launchEdge(edgeOptions(resolved, { config, originUrl, interrupt, terminal }))
      : null;
    await serve({ originUrl, edge, config, interrupt, json, terminal });
  } catch (error) {
    // An end that was asked for while starting is not a failure to start.
    if (!interrupt.signal.aborted) {
      throw error;
    }
  } finally {
    await edge?.stop();
    await origin.close();
    interrupt.release();
  }
  remark(terminal, "Stopped; everything acknowledged is on disk.");
}

interface Serving {
  readonly originUrl: string;
  readonly edge: RunningEdge | null;
  readonly config: OriginConfig;
  readonly interrupt: Interrupt;
  readonly json: boolean;
  readonly terminal: Terminal;
}

/** From the first answer to the wish to end. */
async function serve(serving: Serving): Promise<void> {
  const { originUrl, edge, config, interrupt, json, terminal } = serving;
  await untilLive(originUrl, interrupt.signal);
  if (edge !== null) {
    await untilLive(edge.url, interrupt.signal);
  }
  const running = { origin: originUrl, edge: edge?.url ?? null, data: config.dataDir };
  const text = json
    ? JSON.stringify({ ...running, pid: process.pid, edgePid: edge?.pid ?? null })
    : banner({ ...running, keyed: config.key !== null });
  // Nobody needs to read it for the servers to go on.
  await printLine(terminal, text).catch(() => {});
  const end = await Promise.race([
    aborted(interrupt.signal),
    ...(edge === null ? [] : [edge.ended]),
  ]);
  if (end !== undefined) {
    throw new ForebayError("edge_failed", endText("the edge ended by itself", end));
  }
  remark(terminal, `${interrupt.signal.reason}: stopping; again to end at once.`);
}

function edgeOptions(
  { values }: Resolved,
  context: Pick<Serving, "config" | "originUrl" | "interrupt" | "terminal">,
): EdgeOptions {
  const { config, originUrl, interrupt, terminal } = context;
  return {
    host: values.edgeHost,
    port: values.edgePort,
    originUrl,
    key: values.key,
    region: values.edgeRegion,
    allowedOrigins: values.allowedOrigins,
    dataDir: config.dataDir,
    signal: interrupt.signal,
    verbose: config.logLevel === "debug",
    onLine(level, line): void {
      if (config.logLevel === "debug" || (level === "error" && config.logLevel !== "silent")) {
        remark(terminal, `edge: ${line}`);
      }
    },
  };
}
