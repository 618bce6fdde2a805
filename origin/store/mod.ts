/** The store: records by stream and number. */
export { ResidentStore } from "./resident.ts";
export type { RecordRange, RecordStore } from "./types.ts";
