import { expect } from "vitest";
import { ForebayError } from "../../shared/errors/mod.ts";

/** The error a call must throw. Anything but a ForebayError fails the test. */
export function errorOf(call: () => unknown): ForebayError {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(ForebayError);
    return error as ForebayError;
  }
  throw new Error("nothing was thrown");
}

export const codeOf = (call: () => unknown): string => errorOf(call).code;
