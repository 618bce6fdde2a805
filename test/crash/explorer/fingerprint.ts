import { crc32 } from "node:zlib";
import { crc32c } from "../../../origin/native/mod.ts";
import type { MemoryDisk } from "../../../origin/storage/mod.ts";

/** Contents that images share are hashed once: nobody writes to them any more. */
const known = new WeakMap<Uint8Array, readonly [number, number]>();

function hashed(bytes: Uint8Array): readonly [number, number] {
  let pair = known.get(bytes);
  if (pair === undefined) {
    pair = [crc32c(bytes, 0, bytes.length, 0), crc32(bytes)];
    known.set(bytes, pair);
  }
  return pair;
}

/** 53 bits over names and contents, from two checksums of different polynomials. Only for a fresh survivor of a crash. */
export function fingerprint(image: MemoryDisk): number {
  const files = image.files();
  let [high, low] = [files.size, 17];
  for (const path of [...files.keys()].toSorted()) {
    const [one, two] = hashed(files.get(path) ?? new Uint8Array(0));
    const name = crc32(path);
    high = Math.imul(high ^ one, 0x9e3779b1) ^ Math.imul(name, 0x85ebca6b);
    low = Math.imul(low ^ two, 0xc2b2ae35) ^ Math.imul(name, 0x27d4eb2f);
    high ^= high >>> 15;
    low ^= low >>> 13;
  }
  return (high >>> 0) * 2 ** 21 + ((low >>> 0) & 0x1fffff);
}
