/** Reads, and the writes that are not coalesced: passed to the origin, streamed back. */
export { Reader, type Forwarding } from "./forward.ts";
