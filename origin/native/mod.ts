import { fileURLToPath } from "node:url";
import { crc32c as portableCrc32c } from "../../shared/crc/mod.ts";
import { loadAddon, type NativeLayer } from "./load.ts";

export type { CommitterHandle, NativeLayer, OpenCommitter } from "./load.ts";

const loaded = loadAddon(fileURLToPath(new URL("../../.build/forebay.node", import.meta.url)));

/** The native addon, or undefined where it was not built or does not load. */
export function nativeLayer(): NativeLayer | undefined {
  return loaded.layer;
}

/** Why there is no native layer; undefined when there is one. */
export function nativeAbsence(): string | undefined {
  return loaded.absence;
}

/** CRC-32C of `length` bytes from `offset` on, continuing `seed` (0 for none). */
export const crc32c: (bytes: Uint8Array, offset: number, length: number, seed: number) => number =
  loaded.layer === undefined
    ? (bytes, offset, length, seed) => portableCrc32c(bytes.subarray(offset, offset + length), seed)
    : loaded.layer.crc32c;
