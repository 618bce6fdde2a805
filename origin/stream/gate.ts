import type { Lsn } from "../../shared/ids/mod.ts";
import { lsn } from "../../shared/ids/mod.ts";
import type { GateWaiter } from "./types.ts";

const initialSlots = 1024;

/**
 * The output gate (DESIGN, promise 4): a reply leaves only when the newest entry it was judged by is durable.
 *
 * Waiters stand in one FIFO ring, and only the head is looked at: a waiter with a lower LSN than one before it waits
 * for that one too. That is right, because it can only wait longer than it must, never shorter, and not by much: the
 * one before it is judged by an entry that is reserved already and becomes durable, or fails, by the commits in
 * flight. In return an advance costs nothing per waiter that stays, and replies leave in the order of `hold`.
 *
 * Invariant: with `#failure` set the ring is empty.
 */
export class OutputGate {
  #mask = initialSlots - 1;
  #head = 0;
  #size = 0;
  #lsns = new Float64Array(initialSlots);
  #waiters: (GateWaiter | null)[] = Array.from({ length: initialSlots }, () => null);
  #durable: Lsn = lsn(0);
  #failure: Error | null = null;

  get durable(): Lsn {
    return this.#durable;
  }

  get waiting(): number {
    return this.#size;
  }

  hold(at: Lsn, waiter: GateWaiter): void {
    if (at <= this.#durable) {
      waiter.release();
      return;
    }
    if (this.#failure !== null) {
      waiter.fail(this.#failure);
      return;
    }
    if (this.#size > this.#mask) {
      this.#grow();
    }
    const slot = (this.#head + this.#size) & this.#mask;
    this.#lsns[slot] = at;
    this.#waiters[slot] = waiter;
    this.#size += 1;
  }

  /** Lets go all that `durable` covers. A waiter may call `hold` again while it is let go. */
  advance(durable: Lsn): void {
    if (durable > this.#durable) {
      this.#durable = durable;
    }
    while (this.#size > 0 && (this.#lsns[this.#head] ?? 0) <= this.#durable) {
      this.#take()?.release();
    }
  }

  /** The journal failed closed: every waiter's outcome is unknown, and so is that of those to come. */
  fail(error: Error): void {
    this.#failure ??= error;
    while (this.#size > 0) {
      this.#take()?.fail(this.#failure);
    }
  }

  #take(): GateWaiter | null {
    const slot = this.#head;
    const waiter = this.#waiters[slot] ?? null;
    this.#waiters[slot] = null;
    this.#head = (slot + 1) & this.#mask;
    this.#size -= 1;
    return waiter;
  }

  #grow(): void {
    const slots = (this.#mask + 1) * 2;
    const lsns = new Float64Array(slots);
    const waiters: (GateWaiter | null)[] = Array.from({ length: slots }, () => null);
    for (let i = 0; i < this.#size; i++) {
      const from = (this.#head + i) & this.#mask;
      lsns[i] = this.#lsns[from] ?? 0;
      waiters[i] = this.#waiters[from] ?? null;
    }
    this.#lsns = lsns;
    this.#waiters = waiters;
    this.#head = 0;
    this.#mask = slots - 1;
  }
}
