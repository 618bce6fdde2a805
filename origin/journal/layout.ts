import { blockBytes } from "../storage/mod.ts";

/** What FORMAT.md says in numbers. */
export const formatVersion = 1;
export const segmentHeaderBytes = 68;
export const batchHeaderBytes = 68;
export const entryHeaderBytes = 4;
export const dualFileBytes: number = 2 * blockBytes;
export const dualRecordBytes = 64;

export const batchFlag = { seal: 1 } as const;

/** `bytes` rounded up to whole blocks. */
export function padded(bytes: number): number {
  return Math.ceil(bytes / blockBytes) * blockBytes;
}

/** Where data batches of a segment must end: the last block is kept for SEAL. */
export function dataEnd(segmentBytes: number): number {
  return segmentBytes - blockBytes;
}

const suffix = ".segment";
export const preparingSuffix = ".new";

export function segmentName(generation: number): string {
  return generation.toString(16).padStart(16, "0") + suffix;
}

/** The generation a file name stands for; undefined when it is no segment's name. */
export function generationOfName(name: string): number | undefined {
  const match = /^([0-9a-f]{16})\.segment$/.exec(name);
  return match?.[1] === undefined ? undefined : Number.parseInt(match[1], 16);
}

/** 64-bit numbers below 2⁵³; a larger one, which only damage can give, reads as no number we could have written. */
export function readU64(view: DataView, at: number): number {
  return view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true);
}

export function writeU64(view: DataView, at: number, value: number): void {
  view.setUint32(at, value >>> 0, true);
  view.setUint32(at + 4, Math.floor(value / 2 ** 32), true);
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function writeText(bytes: Uint8Array, at: number, text: string): void {
  for (let i = 0; i < text.length; i++) {
    bytes[at + i] = text.charCodeAt(i);
  }
}

export function readText(bytes: Uint8Array, at: number, length: number): string {
  return String.fromCharCode(...bytes.subarray(at, at + length));
}

export function hex(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) {
    text += byte.toString(16).padStart(2, "0");
  }
  return text;
}

/** A checksum as messages show it. */
export function crcText(crc: number): string {
  return `0x${crc.toString(16).padStart(8, "0")}`;
}
