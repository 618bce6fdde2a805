import { catalogue, type ErrorCode } from "./catalogue.ts";

/** What an error may carry besides its message. */
export interface ErrorExtras {
  /** Extra response header fields, e.g. `Stream-Next-Offset`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Seconds for `Retry-After`; retryable errors without it say 1. */
  readonly retryAfterSeconds?: number;
  readonly cause?: unknown;
}

/** An operating error of the catalogue. Programmer errors are asserts, never this. */
export class ForebayError extends Error {
  readonly code: ErrorCode;
  readonly headers: Readonly<Record<string, string>>;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause });
    this.name = "ForebayError";
    this.code = code;
    this.headers = extras.headers ?? {};
    this.retryAfterSeconds =
      extras.retryAfterSeconds ?? (catalogue[code].retryable ? 1 : undefined);
  }

  get status(): number {
    return catalogue[this.code].status;
  }

  get retryable(): boolean {
    return catalogue[this.code].retryable;
  }
}

/** A programmer error: the invariant `what` does not hold. Ends the process where it surfaces. */
export function invariant(holds: boolean, what: string): asserts holds {
  if (!holds) {
    throw new Error(`invariant broken: ${what}`);
  }
}
