import { createRequire } from "node:module";

/** What the addon offers. Wrong arguments throw TypeError or RangeError, failed calls a system error. */
export interface NativeLayer {
  /** CRC-32C of `length` bytes from `offset` on, continuing `seed`. */
  crc32c(bytes: Uint8Array, offset: number, length: number, seed: number): number;
  /** The same without the processor's instruction. */
  crc32cSoftware(bytes: Uint8Array, offset: number, length: number, seed: number): number;
  /** "sse4.2" or "software". */
  readonly crc32cVariant: string;
  /** Takes the exclusive lock of an open file without waiting; false when another holds it. */
  flock(fd: number): boolean;
  /** Everything written to the file system that holds `fd` is on the device. Blocks the thread. */
  syncfs(fd: number): void;
}

export type Loaded =
  | { readonly layer: NativeLayer; readonly absence?: undefined }
  | { readonly layer?: undefined; readonly absence: string };

/** Loads the addon file at `path`; when it cannot be used, says why. */
export function loadAddon(path: string): Loaded {
  let layer: NativeLayer;
  try {
    layer = createRequire(import.meta.url)(path) as NativeLayer;
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "MODULE_NOT_FOUND";
    const reason = error instanceof Error ? error.message : String(error);
    return { absence: missing ? `${path} is not there (npm start builds it with cc)` : reason };
  }
  if (typeof layer.crc32c !== "function" || typeof layer.flock !== "function") {
    return { absence: `${path} is not the addon of this version` };
  }
  return { layer };
}
