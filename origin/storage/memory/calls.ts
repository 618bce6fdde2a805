import { diskError } from "../access.ts";

export type CallName =
  | "open"
  | "read"
  | "write"
  | "sync"
  | "size"
  | "close"
  | "list"
  | "mkdir"
  | "rename"
  | "unlink"
  | "syncDirectory"
  | "stat"
  | "space"
  | "lock";

/** One call on a memory disk, as an observer sees it before it takes effect. */
export interface DiskCall {
  /** Number of the call on this disk, from 1. */
  readonly n: number;
  readonly name: CallName;
  readonly path: string;
  /** Mode of an open, target of a rename; otherwise "". */
  readonly detail: string;
  /** First byte and number of bytes of a read or write; otherwise 0. */
  readonly position: number;
  readonly bytes: number;
}

/**
 * Sees every call and may refuse it: a returned error code ("EIO", "ENOSPC" …) makes the call fail;
 * "short" makes a read or write do only half of its work.
 */
export type Observer = (call: DiskCall) => string | undefined;

export interface WaitingCall {
  readonly call: DiskCall;
  /** Lets the call take effect and resolve, or fail if the observer said so. */
  release(): void;
}

/** Numbers the calls, asks the observer, and in stepped mode holds each until it is released. */
export class Calls {
  /** Calls that have been made and have not resolved, oldest first. Always empty unless stepped. */
  readonly waiting: WaitingCall[] = [];
  observer: Observer | undefined;
  readonly #stepped: boolean;
  #count = 0;

  constructor(stepped: boolean, observer: Observer | undefined) {
    this.#stepped = stepped;
    this.observer = observer;
  }

  /**
   * Runs `effect` now, or on release. It gets `short` when the call is to do half of its work; `failed`
   * runs instead when the call is to fail.
   */
  make<T>(
    what: Omit<DiskCall, "n">,
    effect: (short: boolean) => T,
    failed?: () => void,
  ): Promise<T> {
    const call = { n: ++this.#count, ...what };
    const verdict = this.observer?.(call);
    return new Promise<T>((resolve, reject) => {
      const settle = (): void => {
        if (verdict !== undefined && verdict !== "short") {
          failed?.();
          reject(diskError(verdict, `${call.name} ${call.path} (injected)`));
          return;
        }
        try {
          resolve(effect(verdict === "short"));
        } catch (error) {
          failed?.();
          reject(error as Error);
        }
      };
      if (this.#stepped) {
        this.#hold(call, settle);
      } else {
        settle();
      }
    });
  }

  #hold(call: DiskCall, settle: () => void): void {
    const waitingCall = {
      call,
      release: (): void => {
        const index = this.waiting.indexOf(waitingCall);
        if (index >= 0) {
          this.waiting.splice(index, 1);
          settle();
        }
      },
    };
    this.waiting.push(waitingCall);
  }
}
