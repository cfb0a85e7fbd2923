/* bits.h - integers of few bits: runs and packed groups, and deltas. Private to this folder.
 *
 * Source: parquet-format, Encodings.md: "Run Length Encoding / Bit-Packing Hybrid", "Delta Encoding".
 */
#ifndef TY_CONTAINER_INPUT_PARQUET_BITS_H
#define TY_CONTAINER_INPUT_PARQUET_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The next n of `width` bits (0 to 32) from *p on, which moves behind the last run that was begun. False: they end
 * early, or a run makes no sense. */
bool bits_hybrid(const uint8_t **p, const uint8_t *end, int width, int64_t n, uint32_t *out);

/* All n integers of a delta-encoded block, as 64 bits that wrap around. False: there are others than n, or they end
 * early. */
bool bits_delta(const uint8_t **p, const uint8_t *end, int64_t n, int64_t *out);

/* How many bits numbers up to `most` take. */
int bits_width(uint32_t most);

#endif
