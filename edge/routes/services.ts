import { limits } from "../../shared/limits.ts";
import type { Clock } from "../../shared/ports/mod.ts";
import { PendingBudget, Writers } from "../batcher/mod.ts";
import { Reader } from "../reader/mod.ts";
import { OriginReach } from "../uplink/mod.ts";
import { Unacknowledged } from "./unacknowledged.ts";

/** What all requests of one isolate share: plain state, never a request's own I/O. */
export interface Services {
  readonly clock: Clock;
  /** Bytes of bodies that are being received and answered. */
  readonly bodies: PendingBudget;
  readonly writers: Writers;
  readonly reader: Reader;
  readonly unacknowledged: Unacknowledged;
}

export function createServices(clock: Clock): Services {
  const reach = new OriginReach(clock);
  return {
    clock,
    bodies: new PendingBudget(limits.pendingBytesMax),
    writers: new Writers(clock, reach),
    reader: new Reader(clock, reach),
    unacknowledged: new Unacknowledged(),
  };
}
