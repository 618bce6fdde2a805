import { crc32c } from "../native/mod.ts";
import { blockBytes } from "../storage/mod.ts";
import { corrupt, newerVersion } from "./damage.ts";
import {
  crcText,
  formatVersion,
  hex,
  readText,
  readU64,
  segmentHeaderBytes,
  viewOf,
  writeText,
  writeU64,
} from "./layout.ts";

export interface SegmentHeader {
  /** Journal id, 16 bytes. */
  readonly id: Uint8Array;
  readonly generation: number;
  readonly createdAt: number;
  /** Size of the file. */
  readonly bytes: number;
  /** Begins the header CRC of every batch; random, so that no record's bytes can pass for a batch. */
  readonly salt: number;
}

const magic = "FBYSEGMT";
const crcAt = segmentHeaderBytes - 4;
const manifestRequired = 1;
const crc32cAlgorithm = 1;

/** Block 0 of a segment. */
export function encodeSegmentHeader(header: SegmentHeader): Uint8Array {
  const block = new Uint8Array(blockBytes);
  const view = viewOf(block);
  writeText(block, 0, magic);
  view.setUint32(8, formatVersion, true);
  view.setUint32(12, manifestRequired, true);
  block.set(header.id, 16);
  writeU64(view, 32, header.generation);
  writeU64(view, 40, header.createdAt);
  writeU64(view, 48, header.bytes);
  view.setUint32(56, crc32cAlgorithm, true);
  view.setUint32(60, header.salt, true);
  view.setUint32(crcAt, crc32c(block, 0, crcAt, 0), true);
  return block;
}

/** @throws ForebayError `journal_corrupt` | `format_unsupported` */
export function decodeSegmentHeader(block: Uint8Array, path: string): SegmentHeader {
  const view = viewOf(block);
  if (readText(block, 0, magic.length) !== magic) {
    throw corrupt(
      path,
      `offset 0: expected the magic ${magic}, found ${hex(block.subarray(0, 8))}`,
    );
  }
  const crc = crc32c(block, 0, crcAt, 0);
  if (crc !== view.getUint32(crcAt, true)) {
    const found = crcText(view.getUint32(crcAt, true));
    throw corrupt(path, `offset ${crcAt}: expected header CRC ${crcText(crc)}, found ${found}`);
  }
  const version = view.getUint32(8, true);
  if (version !== formatVersion) {
    throw newerVersion(path, version);
  }
  return {
    id: block.slice(16, 32),
    generation: readU64(view, 32),
    createdAt: readU64(view, 40),
    bytes: readU64(view, 48),
    salt: view.getUint32(60, true),
  };
}
