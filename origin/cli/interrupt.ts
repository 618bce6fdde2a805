import { clock } from "../ports/mod.ts";

/** A process that was asked to end: by Ctrl-C, by `kill`, or because its terminal went away. */
export interface Interrupt {
  /** Aborts with the first request; its reason is the signal's name. */
  readonly signal: AbortSignal;
  /** Stops listening. */
  release(): void;
}

const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** npm passes a signal on that the terminal has already sent to the whole group: one wish, twice heard. */
const echoMsMax = 1000;

/** @param force called when the wish is repeated: end now, whatever is unfinished */
export function listenForInterrupt(force: () => void): Interrupt {
  const controller = new AbortController();
  let askedAt = 0;
  const onSignal = (name: NodeJS.Signals): void => {
    if (!controller.signal.aborted) {
      askedAt = clock.now();
      controller.abort(name);
    } else if (clock.now() - askedAt > echoMsMax) {
      force();
    }
  };
  for (const name of names) {
    process.on(name, onSignal);
  }
  return {
    signal: controller.signal,
    release(): void {
      for (const name of names) {
        process.off(name, onSignal);
      }
    },
  };
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
    } else {
      signal.addEventListener("abort", () => resolve(), { once: true });
    }
  });
}
