/**
 * The front: connections, and HTTP as it comes in and goes out. What the strict recogniser knows it reads itself, the
 * rest is node:http's (DECISIONS.md). It knows no route but the two the recogniser is for.
 */
export { tooLarge, HeldBytes, type BodySink } from "./body.ts";
export type { Channel } from "./channel.ts";
export { Front, type FrontOptions } from "./front.ts";
export type { Head } from "./head.ts";
export { isHost } from "./host.ts";
export { HeaderBlock } from "./headerBlock.ts";
export type { NodeChannel } from "./nodeChannel.ts";
export { isHotTarget } from "./recognise.ts";
export { Target } from "./target.ts";
export type { FrontSettings } from "./types.ts";
