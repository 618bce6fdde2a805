import { expect, vi } from "vitest";

/** A machine under load is slow, not wrong: only what never comes is a failure. */
const patienceMs = 10_000;
vi.setConfig({ testTimeout: 3 * patienceMs });

/** Asserts on a value that gets right in a while. */
export const eventually = <T>(read: () => T): ReturnType<typeof expect.poll<T>> =>
  expect.poll(read, { timeout: patienceMs, interval: 20 });
