/**
 * The leaderless batcher: requests of one isolate share flights to one target. lane.ts says how and why; writers.ts holds
 * the lanes.
 */
export { PendingBudget } from "./budget.ts";
export { Writers, type Buffered, type OutboxPlace, type WritersStats } from "./writers.ts";
