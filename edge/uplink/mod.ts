/** The way to the origin that does not go through an outbox: direct frames, whose requests wait for the answer. */
export { sendDirect } from "./direct.ts";
export { OriginReach, type OriginLink, reason, unreachable } from "./reach.ts";
