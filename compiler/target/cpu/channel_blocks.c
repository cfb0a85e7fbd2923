/* channel_blocks.c - see channel_blocks.h. The channels-last side is gone through in its order, a tile of positions at
 * a time, so that it is one stream which the processor fetches ahead. */
#include "compiler/target/cpu/channel_blocks.h"

#include "compiler/target/cpu/clones.h"

#include <string.h>

#define BLOCKS_TILE  128  /* positions */
#define BLOCKS_AHEAD 2048 /* bytes that are asked for ahead of their turn: a tenth less time than without */

/* A tile's corner on both sides. */
typedef struct blocks_tile {
    const char *from;
    char *to;
    int64_t positions, blocks;
    int64_t from_position, from_block; /* bytes to the next one */
    int64_t to_position, to_block;
} blocks_tile;

TY_CPU_INLINE void blocks_copy(const blocks_tile *t, size_t bytes)
{
    for (int64_t p = 0; p < t->positions; p++)
        for (int64_t k = 0; k < t->blocks; k++) {
            const char *from = t->from + p * t->from_position + k * t->from_block;
            __builtin_prefetch(from + BLOCKS_AHEAD);
            memcpy(t->to + p * t->to_position + k * t->to_block, from, bytes);
        }
}

/* Sizes that are known become one or two instructions. */
TY_CPU_CLONES static void blocks_copy_64(const blocks_tile *t)
{
    blocks_copy(t, 64);
}

TY_CPU_CLONES static void blocks_copy_32(const blocks_tile *t)
{
    blocks_copy(t, 32);
}

TY_CPU_CLONES static void blocks_copy_16(const blocks_tile *t)
{
    blocks_copy(t, 16);
}

static void blocks_move(const ty_channel_blocks *b, char *to, const char *from, bool split, int threads)
{
    (void)threads; /* without OpenMP */
    int64_t tiles = (b->positions + BLOCKS_TILE - 1) / BLOCKS_TILE, image = b->positions * b->blocks * b->block_bytes;
    int64_t last[2] = {b->blocks * b->block_bytes, b->block_bytes}; /* position, block */
    int64_t blocked[2] = {b->block_bytes, b->positions * b->block_bytes};
    const int64_t *in = split ? last : blocked, *out = split ? blocked : last;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < b->images * tiles; i++) {
        int64_t first = i % tiles * BLOCKS_TILE, at = i / tiles * image;
        int64_t n = b->positions - first < BLOCKS_TILE ? b->positions - first : BLOCKS_TILE;
        const blocks_tile tile = {.from = from + at + first * in[0],
                                  .to = to + at + first * out[0],
                                  .positions = n,
                                  .blocks = b->blocks,
                                  .from_position = in[0],
                                  .from_block = in[1],
                                  .to_position = out[0],
                                  .to_block = out[1]};
        if (b->block_bytes == 64)
            blocks_copy_64(&tile);
        else if (b->block_bytes == 32)
            blocks_copy_32(&tile);
        else
            blocks_copy_16(&tile);
    }
}

bool ty_channel_blocks_fit(const ty_channel_blocks *b)
{
    return b->block_bytes == 64 || b->block_bytes == 32 || b->block_bytes == 16;
}

void ty_channel_blocks_split(const ty_channel_blocks *b, void *blocked, const void *last, int threads)
{
    blocks_move(b, blocked, last, true, threads);
}

void ty_channel_blocks_join(const ty_channel_blocks *b, void *last, const void *blocked, int threads)
{
    blocks_move(b, last, blocked, false, threads);
}
