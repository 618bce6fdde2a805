import { crc32c } from "../native/mod.ts";
import { newerVersion } from "./damage.ts";
import { batchHeaderBytes, crcText, formatVersion, readU64, viewOf, writeU64 } from "./layout.ts";

export interface BatchHeader {
  /** Bit set of `batchFlag`. */
  readonly flags: number;
  readonly generation: number;
  readonly term: number;
  readonly seq: number;
  readonly firstLsn: number;
  readonly durableSeq: number;
  /** Payload bytes. */
  readonly length: number;
  readonly entries: number;
  readonly previousCrc: number;
  readonly payloadCrc: number;
}

/** Where a chain of batches stands: what the next one must follow on. */
export interface ChainEnd {
  readonly seq: number;
  readonly term: number;
  /** The last LSN. */
  readonly lsn: number;
  /** Header CRC of the last batch; 0 before the first. */
  readonly crc: number;
}

/** Before the first batch of a journal. */
export const chainStart: ChainEnd = { seq: 0, term: 0, lsn: 0, crc: 0 };

const magic = 0x54414246; // "FBAT"
const crcAt = batchHeaderBytes - 4;

/** Writes the header into the first bytes of `area` and returns its CRC. */
export function encodeBatchHeader(area: Uint8Array, header: BatchHeader, salt: number): number {
  const view = viewOf(area);
  view.setUint32(0, magic, true);
  view.setUint16(4, formatVersion, true);
  view.setUint16(6, header.flags, true);
  writeU64(view, 8, header.generation);
  writeU64(view, 16, header.term);
  writeU64(view, 24, header.seq);
  writeU64(view, 32, header.firstLsn);
  writeU64(view, 40, header.durableSeq);
  view.setUint32(48, header.length, true);
  view.setUint32(52, header.entries, true);
  view.setUint32(56, header.previousCrc, true);
  view.setUint32(60, header.payloadCrc, true);
  const crc = crc32c(area, 0, crcAt, salt);
  view.setUint32(crcAt, crc, true);
  return crc;
}

export type Decoded =
  | { readonly header: BatchHeader; readonly crc: number }
  | { readonly header?: undefined; readonly why: string };

/**
 * Reads the batch header at the start of `bytes`; says why when there is none.
 *
 * @throws ForebayError `format_unsupported` for a valid header of another version
 */
export function decodeBatchHeader(bytes: Uint8Array, salt: number, path: string): Decoded {
  const view = viewOf(bytes);
  const found = view.getUint32(0, true);
  if (found !== magic) {
    return { why: `expected a batch (magic ${crcText(magic)}), found ${crcText(found)}` };
  }
  const crc = crc32c(bytes, 0, crcAt, salt);
  const stored = view.getUint32(crcAt, true);
  if (crc !== stored) {
    return { why: `expected header CRC ${crcText(crc)}, found ${crcText(stored)}` };
  }
  const version = view.getUint16(4, true);
  if (version !== formatVersion) {
    throw newerVersion(path, version);
  }
  const header = {
    flags: view.getUint16(6, true),
    generation: readU64(view, 8),
    term: readU64(view, 16),
    seq: readU64(view, 24),
    firstLsn: readU64(view, 32),
    durableSeq: readU64(view, 40),
    length: view.getUint32(48, true),
    entries: view.getUint32(52, true),
    previousCrc: view.getUint32(56, true),
    payloadCrc: view.getUint32(60, true),
  };
  return { header, crc };
}

/**
 * Why `header` does not follow `end` in a segment of `generation`; undefined when it does.
 *
 * @param end undefined: any batch of the segment may be the first
 */
export function chainBreak(
  header: BatchHeader,
  end: ChainEnd | undefined,
  generation: number,
): string | undefined {
  const differs = (what: string, expected: string, found: string): string =>
    `expected ${what} ${expected}, found ${found}`;
  if (header.generation !== generation) {
    return differs("segment generation", `${generation}`, `${header.generation}`);
  }
  if (end === undefined) {
    return undefined;
  }
  if (header.seq !== end.seq + 1) {
    return differs("seq", `${end.seq + 1}`, `${header.seq}`);
  }
  if (header.term < end.term) {
    return differs("a term of at least", `${end.term}`, `${header.term}`);
  }
  if (header.previousCrc !== end.crc) {
    return differs("previous header CRC", crcText(end.crc), crcText(header.previousCrc));
  }
  if (header.firstLsn !== end.lsn + 1) {
    return differs("first LSN", `${end.lsn + 1}`, `${header.firstLsn}`);
  }
  return undefined;
}
