/**
 * CRC-32C (Castagnoli; reflected polynomial 0x82f63b78, RFC 3720 §12.1), eight bytes a step
 * ("slice-by-8": Kounavis and Berry, 2005). Row `k` of `tables` (256 words) is the effect of a byte
 * followed by `k` zero bytes.
 */
const tables: Uint32Array = buildTables();

function buildTables(): Uint32Array {
  const built = new Uint32Array(8 * 256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) {
      crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
    }
    built[byte] = crc;
  }
  for (let i = 256; i < built.length; i++) {
    const before = at(built, i - 256);
    built[i] = (before >>> 8) ^ at(built, before & 0xff);
  }
  return built;
}

/** Every index below is masked or bounded by the length, so the element is never undefined. */
function at(words: Uint32Array | Uint8Array, index: number): number {
  return (words[index] as number) | 0;
}

/**
 * The CRC-32C of `bytes`, an unsigned 32-bit number.
 *
 * @param seed the CRC of the bytes before these, so that
 *   `crc32c(b, crc32c(a)) === crc32c(concat(a, b))`; 0 for none
 */
export function crc32c(bytes: Uint8Array, seed = 0): number {
  const t = tables;
  const end = bytes.length;
  const wordsEnd = end - 7;
  let crc = ~seed;
  let i = 0;
  for (; i < wordsEnd; i += 8) {
    const low =
      crc ^
      (at(bytes, i) |
        (at(bytes, i + 1) << 8) |
        (at(bytes, i + 2) << 16) |
        (at(bytes, i + 3) << 24));
    crc =
      at(t, 1792 | (low & 0xff)) ^
      at(t, 1536 | ((low >>> 8) & 0xff)) ^
      at(t, 1280 | ((low >>> 16) & 0xff)) ^
      at(t, 1024 | (low >>> 24)) ^
      at(t, 768 | at(bytes, i + 4)) ^
      at(t, 512 | at(bytes, i + 5)) ^
      at(t, 256 | at(bytes, i + 6)) ^
      at(t, at(bytes, i + 7));
  }
  for (; i < end; i++) {
    crc = (crc >>> 8) ^ at(t, (crc ^ at(bytes, i)) & 0xff);
  }
  return ~crc >>> 0;
}
