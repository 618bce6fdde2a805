import { createRequire } from "node:module";

/** What the addon offers. Wrong arguments throw TypeError or RangeError, failed calls a system error. */
export interface NativeLayer {
  /** CRC-32C of `length` bytes from `offset` on, continuing `seed`. */
  crc32c(bytes: Uint8Array, offset: number, length: number, seed: number): number;
  /** The same without the processor's instruction. */
  crc32cSoftware(bytes: Uint8Array, offset: number, length: number, seed: number): number;
  /** "sse4.2" or "software". */
  readonly crc32cVariant: string;
  /**
   * Starts the threads of a committer; see origin/native/committer.h.
   *
   * @param backend 0 uring, 1 threads
   * @throws the system's error, with its `code`, when the backend is not to be had
   */
  openCommitter(...start: CommitterStart): OpenCommitter;
  committerRing(handle: CommitterHandle): void;
  /** Everything published must be durable: what follows goes to `fd`. */
  committerUse(handle: CommitterHandle, fd: number, salt: number): void;
  committerAllocate(
    handle: CommitterHandle,
    bytes: number,
  ): { readonly index: number; readonly memory: ArrayBuffer };
  /** Whether the process stays alive for the committer's wakes. */
  committerHold(handle: CommitterHandle, held: boolean): void;
  /** Ends the threads; waits for what is in flight. */
  committerClose(handle: CommitterHandle): void;
  /** The name Node gives an errno. */
  errorName(errno: number): string;
  /** Takes the exclusive lock of an open file without waiting; false when another holds it. */
  flock(fd: number): boolean;
  /** Everything written to the file system that holds `fd` is on the device. Blocks the thread. */
  syncfs(fd: number): void;
}

export type CommitterStart = [
  backend: 0 | 1,
  depth: number,
  areas: number,
  areaBytes: number,
  term: number,
  seq: number,
  crc: number,
  /** Descriptor of the directory's locked file, plus 1; 0 when there is none. */
  lock: number,
  onWake: () => void,
];

export type CommitterHandle = object & { readonly committer: unique symbol };

export interface OpenCommitter {
  readonly handle: CommitterHandle;
  readonly control: ArrayBuffer;
  readonly descriptors: ArrayBuffer;
  /** The areas, back to back. */
  readonly memory: ArrayBuffer;
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
  if (typeof layer.crc32c !== "function" || typeof layer.openCommitter !== "function") {
    return { absence: `${path} is not the addon of this version` };
  }
  return { layer };
}
