/*
 * CRC-32C (Castagnoli; reflected polynomial 0x82f63b78, RFC 3720 section 12.1): the processor's own
 * instruction where there is one, else eight table look-ups per eight bytes ("slice-by-8").
 */
#include "crc32c.h"

#include <string.h>

/* Row k: the effect of a byte that is followed by k zero bytes. */
static uint32_t tables[8][256];

static uint32_t (*chosen)(uint32_t, const uint8_t *, size_t) = crc32c_software;
static const char *variant = "software";

static void build_tables(void) {
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; bit++) {
      crc = (crc >> 1) ^ (0x82f63b78u & (0u - (crc & 1u)));
    }
    tables[0][byte] = crc;
  }
  for (int row = 1; row < 8; row++) {
    for (int byte = 0; byte < 256; byte++) {
      uint32_t before = tables[row - 1][byte];
      tables[row][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
}

uint32_t crc32c_software(uint32_t seed, const uint8_t *bytes, size_t length) {
  uint32_t crc = ~seed;
  for (; length >= 8; bytes += 8, length -= 8) {
    uint32_t low = crc ^ ((uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                          (uint32_t)bytes[3] << 24);
    crc = tables[7][low & 0xff] ^ tables[6][(low >> 8) & 0xff] ^ tables[5][(low >> 16) & 0xff] ^
          tables[4][low >> 24] ^ tables[3][bytes[4]] ^ tables[2][bytes[5]] ^ tables[1][bytes[6]] ^
          tables[0][bytes[7]];
  }
  for (; length > 0; bytes++, length--) {
    crc = (crc >> 8) ^ tables[0][(crc ^ *bytes) & 0xff];
  }
  return ~crc;
}

#if defined(__x86_64__)
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t seed, const uint8_t *bytes,
                                                               size_t length) {
  uint64_t crc = (uint32_t)~seed;
  for (; length >= 8; bytes += 8, length -= 8) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    crc = _mm_crc32_u64(crc, word);
  }
  uint32_t tail = (uint32_t)crc;
  for (; length > 0; bytes++, length--) {
    tail = _mm_crc32_u8(tail, *bytes);
  }
  return ~tail;
}
#endif

void crc32c_choose(void) {
  build_tables();
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) {
    chosen = crc32c_sse42;
    variant = "sse4.2";
  }
#endif
}

uint32_t crc32c(uint32_t seed, const uint8_t *bytes, size_t length) {
  return chosen(seed, bytes, length);
}

const char *crc32c_variant(void) { return variant; }
