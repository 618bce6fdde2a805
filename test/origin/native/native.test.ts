import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadAddon } from "../../../origin/native/load.ts";
import { crc32c, nativeAbsence, nativeLayer } from "../../../origin/native/mod.ts";
import { crc32c as portable } from "../../../shared/crc/mod.ts";
import { seededRandom } from "../seededRandom.ts";

const layer = nativeLayer();

describe("the checksum in use", () => {
  it("gives the check value of CRC-32C for 123456789 (RFC 3720)", () => {
    expect(crc32c(new TextEncoder().encode("123456789"), 0, 9, 0)).toBe(0xe3069283);
  });

  it("equals the portable one at every length 0–160, alignment 0–15, and seed", () => {
    const { bytes, next } = seededRandom(11);
    const data = bytes(256);
    for (let offset = 0; offset < 16; offset++) {
      for (let length = 0; length <= 160; length++) {
        const seed = Math.floor(next() * 2 ** 32);
        const expected = portable(data.subarray(offset, offset + length), seed);
        expect(crc32c(data, offset, length, seed)).toBe(expected);
        if (layer !== undefined) {
          expect(layer.crc32cSoftware(data, offset, length, seed)).toBe(expected);
        }
      }
    }
  });
});

it("tells why there is no layer, or has one", () => {
  expect(layer === undefined).toBe(nativeAbsence() !== undefined);
  expect(loadAddon("/nowhere/forebay.node").absence).toBe(
    "/nowhere/forebay.node is not there (npm start builds it with cc)",
  );
  expect(loadAddon("node:path").absence).toBe("node:path is not the addon of this version");
});

describe.skipIf(layer === undefined)("the addon refuses wrong arguments and lives", () => {
  const call = (name: string, ...given: unknown[]): unknown => {
    const functions = layer as unknown as Record<string, (...given: unknown[]) => unknown>;
    try {
      return functions[name]?.(...given);
    } catch (error) {
      return (error as NodeJS.ErrnoException).code;
    }
  };

  it.each([
    [[], "ERR_INVALID_ARG_TYPE"],
    [["text", 0, 0, 0], "ERR_INVALID_ARG_TYPE"],
    [[null, 0, 0, 0], "ERR_INVALID_ARG_TYPE"],
    [[new Uint16Array(4), 0, 4, 0], "ERR_INVALID_ARG_TYPE"],
    [[new DataView(new ArrayBuffer(4)), 0, 4, 0], "ERR_INVALID_ARG_TYPE"],
    [[new Uint8Array(4), 0, 5, 0], "ERR_OUT_OF_RANGE"],
    [[new Uint8Array(4), 5, 0, 0], "ERR_OUT_OF_RANGE"],
    [[new Uint8Array(4), 3, 2, 0], "ERR_OUT_OF_RANGE"],
    [[new Uint8Array(4), -1, 1, 0], "ERR_OUT_OF_RANGE"],
    [[new Uint8Array(4), 0.5, 1, 0], "ERR_OUT_OF_RANGE"],
    [[new Uint8Array(4), Number.NaN, 1, 0], "ERR_OUT_OF_RANGE"],
    [[new Uint8Array(4), 0, Infinity, 0], "ERR_OUT_OF_RANGE"],
    [[new Uint8Array(4), 0, "4", 0], "ERR_OUT_OF_RANGE"],
    [[new Uint8Array(4), 0, 4, 2 ** 32], "ERR_OUT_OF_RANGE"],
    [[new Uint8Array(4), 0, 4, -1], "ERR_OUT_OF_RANGE"],
    [[new Uint8Array(0), 0, 0, 5], 5],
  ])("crc32c %j", (given, expected) => {
    expect(call("crc32c", ...given)).toBe(expected);
    expect(call("crc32cSoftware", ...given)).toBe(expected);
  });

  it("crc32c of a detached buffer", () => {
    const bytes = new Uint8Array(16);
    structuredClone(bytes, { transfer: [bytes.buffer] });
    expect(call("crc32c", bytes, 0, 16, 0)).toBe("ERR_OUT_OF_RANGE");
    expect(call("crc32c", bytes, 0, 0, 0)).toBe(0);
  });

  it.each(["flock", "syncfs"])("%s of what is no open file", (name) => {
    expect(call(name)).toBe("ERR_INVALID_ARG_TYPE");
    expect(call(name, "3")).toBe("ERR_INVALID_ARG_TYPE");
    expect(call(name, -1)).toBe("ERR_INVALID_ARG_TYPE");
    expect(call(name, 2 ** 31)).toBe("ERR_INVALID_ARG_TYPE");
    expect(call(name, 999_999)).toBe("EBADF");
  });

  it("flock excludes a second open of the file; syncfs answers", () => {
    const dir = mkdtempSync(join(tmpdir(), "forebay-native-"));
    const first = openSync(join(dir, "x"), "w");
    const second = openSync(join(dir, "x"), "w");
    expect(call("flock", first)).toBe(true);
    expect(call("flock", second)).toBe(false);
    closeSync(first);
    expect(call("flock", second)).toBe(true);
    expect(call("syncfs", second)).toBeUndefined();
    closeSync(second);
    rmSync(dir, { recursive: true });
  });
});
