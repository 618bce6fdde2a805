/** What the Worker answers, by path and method. */
export { createEdge, type EdgeHandler } from "./app.ts";
export type { Env } from "./env.ts";
