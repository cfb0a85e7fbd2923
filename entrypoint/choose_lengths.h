/* choose_lengths.h - the lengths of length_buckets: auto. */
#ifndef TY_ENTRYPOINT_CHOOSE_LENGTHS_H
#define TY_ENTRYPOINT_CHOOSE_LENGTHS_H

#include <stdint.h>

/* Most lengths that are chosen: each is a program that is compiled. */
enum { TY_CHOSEN_LENGTHS = 8 };

/* Rising lengths, of which the last is `longest`, so that samples filled up to the next one have the fewest columns in
 * all; no more of them than save something. count[longest + 1]: samples of each length. Multiples of 8, and of more
 * where the longest is long. Returns how many there are. */
int ty_choose_lengths(const uint32_t *count, int64_t longest, int64_t out[TY_CHOSEN_LENGTHS]);

#endif
