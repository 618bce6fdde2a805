/** The command line, and the local edge that `start` runs. */
export { launchEdge, type EdgeEnd, type EdgeOptions, type RunningEdge } from "./edge.ts";
export { run } from "./run.ts";
export type { Terminal } from "./terminal.ts";
