import { ForebayError } from "../../shared/errors/mod.ts";
import { crc32c } from "../native/mod.ts";
import { ByteReader, ByteWriter, storeCorrupt } from "./bytes.ts";

export const headerBytes = 4096;
const magic = "FBRUN\0\0\0";
export const storeVersion = 1;
const encoder = new TextEncoder();
const decoder = new TextDecoder("latin1");

/** What a run says of itself, at its beginning and at its end. */
export interface RunHeader {
  readonly lane: number;
  readonly run: number;
  /** 16 bytes. */
  readonly storeId: Uint8Array;
  /** LSNs of the entries it holds. */
  readonly firstLsn: number;
  readonly lastLsn: number;
  readonly index: SectionPlace;
  readonly state: SectionPlace;
  readonly records: number;
  readonly payloadBytes: number;
}

export interface SectionPlace {
  readonly position: number;
  /** Of its content; on disk it takes `sectionBytes` of that. */
  readonly bytes: number;
}

export function encodeHeader(header: RunHeader): Uint8Array {
  const to = new ByteWriter(headerBytes);
  to.bytes(encoder.encode(magic));
  to.u32(storeVersion);
  to.u32(header.lane);
  to.f64(header.run);
  to.bytes(header.storeId);
  to.f64(header.firstLsn);
  to.f64(header.lastLsn);
  for (const { position, bytes } of [header.index, header.state]) {
    to.f64(position);
    to.f64(bytes);
  }
  to.f64(header.records);
  to.f64(header.payloadBytes);
  const content = to.finish();
  to.u32(crc32c(content, 0, content.length, 0));
  const block = new Uint8Array(headerBytes);
  block.set(to.finish());
  return block;
}

/**
 * Null when `block` holds no sound header.
 *
 * @throws ForebayError `format_unsupported`
 */
export function decodeHeader(block: Uint8Array, path: string): RunHeader | null {
  if (block.length < headerBytes || decoder.decode(block.subarray(0, 8)) !== magic) {
    return null;
  }
  const from = new ByteReader(block, `the header of ${path}`);
  from.bytes(8);
  const version = from.u32();
  const lane = from.u32();
  const run = from.f64();
  const storeId = from.bytes(16).slice();
  const [firstLsn, lastLsn] = [from.f64(), from.f64()];
  const index = { position: from.f64(), bytes: from.f64() };
  const state = { position: from.f64(), bytes: from.f64() };
  const [records, payloadBytes] = [from.f64(), from.f64()];
  const length = 8 + 8 + 8 + 16 + 8 * 8;
  if (from.u32() !== crc32c(block, 0, length, 0)) {
    return null;
  }
  checkVersion(version, path);
  return { lane, run, storeId, firstLsn, lastLsn, index, state, records, payloadBytes };
}

/** @throws ForebayError `format_unsupported` */
export function checkVersion(version: number, path: string): void {
  if (version === storeVersion) {
    return;
  }
  if (version < storeVersion) {
    throw storeCorrupt(`${path} is of version ${version}, which there never was`);
  }
  const message = `${path} is of version ${version}, this build reads version ${storeVersion}`;
  throw new ForebayError("format_unsupported", message);
}
