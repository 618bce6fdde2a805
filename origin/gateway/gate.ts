import type { Lsn } from "../../shared/ids/mod.ts";
import type { GateWaiter, Streams } from "../stream/mod.ts";
import { outcomeUnknown } from "./reply.ts";

/**
 * Resolves when everything up to `lsn` is durable (DESIGN, output gate).
 *
 * @throws ForebayError `outcome_unknown` when the commit failed
 */
export function durable(streams: Streams, lsn: Lsn): Promise<void> {
  return new Promise((resolve, reject) => {
    const waiter: GateWaiter = {
      release: resolve,
      fail: (error) => reject(outcomeUnknown(error)),
    };
    streams.hold(lsn, waiter);
  });
}
