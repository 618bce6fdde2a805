import type { LinkMessage } from "../frame/mod.ts";
import type { SenderAnswer } from "./types.ts";

/** What the messages of an answer say to the outbox (buffer, epoch); those to others, and to older epochs, are left out. */
export function readAnswer(
  messages: readonly LinkMessage[],
  buffer: string,
  epoch: string,
): SenderAnswer {
  let welcome: SenderAnswer["welcome"] = null;
  let durable: SenderAnswer["durable"] = null;
  let nack: SenderAnswer["nack"] = null;
  let credit: SenderAnswer["credit"] = null;
  for (const message of messages) {
    if (message.type === "welcome" && message.welcome.buffer === buffer) {
      welcome = message.welcome;
    } else if (
      message.type === "ack" &&
      message.ack.buffer === buffer &&
      message.ack.epoch === epoch
    ) {
      durable = Math.max(durable ?? 0, message.ack.durable);
    } else if (
      message.type === "nack" &&
      message.nack.buffer === buffer &&
      message.nack.epoch === epoch
    ) {
      nack = message.nack;
    } else if (message.type === "credit" && message.credit.buffer === buffer) {
      credit = message.credit.bytes;
    }
  }
  return { welcome, durable, nack, credit };
}
