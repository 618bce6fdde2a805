#ifndef FOREBAY_CRC32C_H
#define FOREBAY_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Chooses the implementation for this processor. Once, before the first call of crc32c. */
void crc32c_choose(void);

/* Continues `seed` (the CRC of the bytes before these; 0 for none) over `length` bytes. */
uint32_t crc32c(uint32_t seed, const uint8_t *bytes, size_t length);

/* "sse4.2" or "software". */
const char *crc32c_variant(void);

/* The portable implementation, so that tests can compare the two. */
uint32_t crc32c_software(uint32_t seed, const uint8_t *bytes, size_t length);

#endif
