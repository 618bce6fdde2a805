/** What the Worker answers, by path and method. */
export { createEdge } from "./app.ts";
export type { Env } from "./env.ts";
