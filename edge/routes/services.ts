import type { Clock } from "../../shared/ports/mod.ts";
import { Writers } from "../batcher/mod.ts";
import { Reader } from "../reader/mod.ts";
import { OriginReach } from "../uplink/mod.ts";
import { Unacknowledged } from "./unacknowledged.ts";

/** What all requests of one isolate share: plain state, never a request's own I/O. */
export interface Services {
  readonly clock: Clock;
  readonly writers: Writers;
  readonly reader: Reader;
  readonly unacknowledged: Unacknowledged;
}

export function createServices(clock: Clock): Services {
  const reach = new OriginReach(clock);
  return {
    clock,
    writers: new Writers(clock, reach),
    reader: new Reader(clock, reach),
    unacknowledged: new Unacknowledged(),
  };
}
