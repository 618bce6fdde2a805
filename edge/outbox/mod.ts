/** The outbox: the edge's durable frame buffer, one Durable Object per buffer. */
export { Outbox } from "./outbox.ts";
export type { OutboxEnv } from "./settings.ts";
export type {
  DeadFrame,
  DeadLetter,
  OutboxAckReply,
  OutboxAnswer,
  OutboxRefusal,
  OutboxReply,
  OutboxRequest,
  OutboxRpc,
  OutboxStatus,
} from "./types.ts";
