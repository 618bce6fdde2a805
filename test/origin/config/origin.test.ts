import { describe, expect, test } from "vitest";
import {
  isLoopback,
  originConfig,
  resolveSettings,
  type Inputs,
} from "../../../origin/config/mod.ts";
import { ForebayError } from "../../../shared/errors/mod.ts";

function configured(flags: Inputs["flags"]) {
  return originConfig(resolveSettings({ flags, env: {}, file: null, cwd: "/nowhere" }), "/nowhere");
}

function refusal(flags: Inputs["flags"]): ForebayError {
  try {
    configured(flags);
  } catch (error) {
    if (error instanceof ForebayError) {
      return error;
    }
    throw error;
  }
  throw new Error("it was accepted");
}

test("the data directory becomes absolute", () => {
  expect(configured({ data: "x/y" }).dataDir).toBe("/nowhere/x/y");
});

describe("a public address needs a key", () => {
  test.each(["0.0.0.0", "::", "10.0.0.1", "forebay.example"])("%s", (host) => {
    const error = refusal({ host });
    expect(error.code).toBe("key_required");
    expect(error.message).toContain(`host = "${host}" (from --host)`);
    expect(configured({ host, key: "k" }).host).toBe(host);
  });

  test("for the edge too, but only when it runs", () => {
    expect(refusal({ edgeHost: "0.0.0.0" }).code).toBe("key_required");
    expect(configured({ edgeHost: "0.0.0.0", edge: "false" }).key).toBeNull();
  });

  test("loopback is 127.0.0.0/8, ::1 and localhost, not names that begin alike", () => {
    expect(["127.0.0.1", "127.9.9.9", "::1", "localhost"].map(isLoopback)).toEqual(
      Array.from({ length: 4 }, () => true),
    );
    expect(["127.0.0.1.example", "127.example", "0.0.0.0", "::"].map(isLoopback)).toEqual(
      Array.from({ length: 4 }, () => false),
    );
  });
});

test("origin and edge do not share a port, unless the system chooses it", () => {
  const error = refusal({ port: "8787" });
  expect([error.code, error.message]).toEqual([
    "config_invalid",
    "port (from --port) and edgePort (from default) are both 8787",
  ]);
  expect(configured({ port: "0", edgePort: "0" }).port).toBe(0);
  expect(configured({ port: "8787", edge: "false" }).port).toBe(8787);
});

test("the journal's budget holds at least two segments", () => {
  expect(refusal({ segmentBytes: "64MiB", journalBudgetBytes: "100MiB" }).message).toContain(
    "journalBudgetBytes = 104857600 (from --journal-budget-bytes) does not hold two segments",
  );
});
