/** The frame sender's decisions, without its I/O: (state, event) → {state, effects}. */
export { readAnswer } from "./answer.ts";
export { emptyMemory, postTimeoutMs, type SenderStart, startSender, stepSender } from "./sender.ts";
export { linkSilenceMsMax, windowBytesMax, windowFramesMax } from "./steps.ts";
export { AckWaiters, type AckWait } from "./waiters.ts";
export type {
  EffectOf,
  FlightFrame,
  SenderAnswer,
  SenderEffect,
  SenderEvent,
  SenderMemory,
  SenderPhase,
  SenderReport,
  SenderState,
  SenderStep,
  Strikes,
} from "./types.ts";
