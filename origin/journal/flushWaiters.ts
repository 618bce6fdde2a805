interface FlushWaiter {
  readonly lsn: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Who waits for an LSN to be durable, in order. */
export class FlushWaiters {
  readonly #waiters: FlushWaiter[] = [];

  wait(lsn: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiters.push({ lsn, resolve, reject });
    });
  }

  settle(durable: number): void {
    const waiters = this.#waiters;
    while (waiters[0] !== undefined && waiters[0].lsn <= durable) {
      waiters.shift()?.resolve();
    }
  }

  fail(error: Error): void {
    for (const waiter of this.#waiters.splice(0)) {
      waiter.reject(error);
    }
  }
}
