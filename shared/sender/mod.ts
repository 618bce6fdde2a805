/** The frame sender's decisions, without its I/O: (state, event) → {state, effects}. */
export { readAnswer } from "./answer.ts";
export { emptyMemory, postTimeoutMs, startSender, stepSender } from "./sender.ts";
export type {
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
