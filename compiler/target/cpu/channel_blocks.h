/* channel_blocks.h - channels-last tensors to and from blocks of channels, the form that oneDNN likes best.
 *
 * Channels-last: [images, positions, blocks * block]. In blocks: [images, blocks, positions, block] (oneDNN's nChw16c).
 * oneDNN's own reorder of these two takes 2 to 2.5 times as long as copying memory does; this takes as long.
 */
#ifndef TY_TARGET_CPU_CHANNEL_BLOCKS_H
#define TY_TARGET_CPU_CHANNEL_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ty_channel_blocks {
    int64_t images, positions; /* positions: of one image */
    int64_t blocks;            /* of an image's channels */
    int64_t block_bytes;       /* 16, 32 or 64: of a block's channels of one position */
} ty_channel_blocks;

/* True for sizes that the functions below take. */
bool ty_channel_blocks_fit(const ty_channel_blocks *b);
/* Copies images * positions * blocks * block_bytes bytes, which do not overlap, on `threads` OpenMP threads. */
void ty_channel_blocks_split(const ty_channel_blocks *b, void *blocked, const void *last, int threads);
void ty_channel_blocks_join(const ty_channel_blocks *b, void *last, const void *blocked, int threads);

#endif
