import { crc32c } from "../native/mod.ts";

/*
 * A section: bytes cut into pages that carry a CRC, all of them written twice. FORMAT.md draws it.
 */

export const pageBytes = 4096;
const pagePayload = pageBytes - 4;

/** Bytes on disk of a section that holds `length` bytes: both copies. */
export function sectionBytes(length: number): number {
  return 2 * copyBytes(length);
}

function copyBytes(length: number): number {
  return Math.ceil(length / pagePayload) * pageBytes;
}

/** One copy of the pages; a section is this twice. */
export function encodePages(bytes: Uint8Array): Uint8Array {
  const pages = new Uint8Array(copyBytes(bytes.length));
  const view = new DataView(pages.buffer);
  for (let page = 0; page * pageBytes < pages.length; page++) {
    const at = page * pageBytes;
    pages.set(bytes.subarray(page * pagePayload, (page + 1) * pagePayload), at + 4);
    view.setUint32(at, crc32c(pages, at + 4, pagePayload, page), true);
  }
  return pages;
}

export interface Section {
  /** Null when a page is damaged in both copies. */
  readonly bytes: Uint8Array | null;
  /** Pages that are damaged in one copy. */
  readonly repairedPages: number;
}

/** @param both both copies as they lie on disk, of a section that holds `length` bytes; may be cut short */
export function decodeSection(both: Uint8Array, length: number): Section {
  const copy = copyBytes(length);
  const bytes = new Uint8Array(length);
  let repairedPages = 0;
  let lost = false;
  for (let page = 0; page * pageBytes < copy; page++) {
    const at = page * pageBytes;
    const first = isSound(both, at, page);
    const second = isSound(both, copy + at, page);
    if (!first && !second) {
      lost = true;
      continue;
    }
    repairedPages += first && second ? 0 : 1;
    const from = (first ? at : copy + at) + 4;
    const here = Math.min(pagePayload, length - page * pagePayload);
    bytes.set(both.subarray(from, from + here), page * pagePayload);
  }
  return { bytes: lost ? null : bytes, repairedPages };
}

function isSound(both: Uint8Array, at: number, page: number): boolean {
  if (at + pageBytes > both.length) {
    return false;
  }
  const crc = new DataView(both.buffer, both.byteOffset + at, 4).getUint32(0, true);
  return crc === crc32c(both, at + 4, pagePayload, page);
}
