/* layout.h - how a kernel is laid over the threads of a GPU: decided here, printed by render.c.
 *
 *     no reductions              a thread a few neighbouring elements; where several operands lie along the last axis
 *                                alone, as what batch norm has of a channel, of a few rows of them
 *     turned operands            tiles, which a block turns in shared memory
 *     rows of up to 4            a thread a row
 *     rows of up to 1,024        4 to 32 lanes of a warp a row, which hold what they need of it in registers
 *     longer rows                a block a row, as where a warp would hold too much; up to 8,192 elements in registers,
 *                                up to 16,384 the rest in shared memory, beyond them in several passes
 *     rows side by side          up to 32 rows a block, a thread of each beside the next: where memory runs across the
 *                                rows, as in a softmax over channels that come first
 *     bands of rows              a block a band, 32 to 256 lanes a row: as many as leave each thread registers for the
 *                                sums of its columns
 *     columns                    up to 32 lanes side by side, each with a few columns; as many rows at a time as then
 *                                fit into a block, or of short columns into a part of it
 *
 * Elements of a thread are neighbours where memory lets it read and write them 16 bytes at a time: the width. It is
 * smaller where a thread would have to keep too much, or too few threads would be left to fill a large GPU. Long rows
 * of an odd length, such as the logits of a vocabulary, are taken from where memory is aligned; the ends one by one.
 */
#ifndef TY_TARGET_CUDA_LAYOUT_H
#define TY_TARGET_CUDA_LAYOUT_H

#include "compiler/kernel/hold.h"
#include "compiler/kernel/lanes.h"

enum { TY_CUDA_THREADS = 256, TY_CUDA_WARP = 32 };

typedef enum ty_cuda_form {
    TY_CUDA_FLAT,
    TY_CUDA_ROW_BY_THREAD,
    TY_CUDA_ROW_BY_WARP,
    TY_CUDA_ROW_BY_BLOCK,
    TY_CUDA_ROWS_ACROSS,
    TY_CUDA_BANDS,
    TY_CUDA_BY_COLUMN,
    TY_CUDA_TILES
} ty_cuda_form;

/* A kernel and its memory. By buffer: what it shares and what is taken off its addresses (compiler/kernel/text.h);
 * bytes of which the first element's address is a multiple, or NULL: 16. */
typedef struct ty_cuda_kernel {
    const ty_kernel *k;
    const uint32_t *alias;
    const int64_t *base;
    const int *align;
    int64_t threads; /* that the GPU wants at work: rather than fewer, each takes less */
} ty_cuda_kernel;

/* What a large GPU wants: 132 multiprocessors with 512 threads each. */
enum { TY_CUDA_FILL = 65536 };

/* How many of its blocks share a multiprocessor, and so its registers, if there are that many. */
typedef enum ty_cuda_room {
    TY_CUDA_FOUR,
    TY_CUDA_THREE, /* several kernels in one */
    TY_CUDA_TWO,   /* threads keep much */
    TY_CUDA_GROUP  /* blocks of one group of warps: two, or three where these multiply together */
} ty_cuda_room;

typedef struct ty_cuda_layout {
    ty_cuda_form form;
    int fast, column;                  /* variable of the lanes, or -1; BY_COLUMN: likewise, else -1 */
    int outer[TY_K_MAX_VARS], n_outer; /* variables from slowest to fastest, without the column */
    int inner[TY_K_MAX_VARS], n_inner; /* likewise */
    int64_t n_rows, row;               /* points of the outer and of the inner space */
    int width;                         /* neighbouring elements, or columns, of a thread */
    int lanes;                         /* threads of a row; of columns: side by side */
    int groups;                        /* rows in registers: how often a thread takes `width` elements; else 0 */
    int spare;                         /* as often again, of which the numbers are in shared memory */
    int64_t points; /* that blocks walk through: groups of elements, rows, bands, blocks of columns */
    int points_per_block;
    ty_cuda_room room;
    bool is_lone;     /* there are so few blocks that each has a multiprocessor to itself */
    int64_t down;     /* FLAT: a thread goes from a row to that many behind, to the last; 0: it has one */
    int along;        /* FLAT: groups of a row that a thread takes, evenly apart; 0: it has one */
    bool shifted;     /* groups of elements begin where memory is aligned, not with the row */
    uint32_t begin;   /* shifted: the buffer of which that holds; its address is at.begin */
    ty_khold hold;    /* groups > 0 */
    ty_lanes at;      /* width > 1 */
    const int *load;  /* by instruction: bytes of an access, 0: one element */
    const int *store; /* by store */
    int turned, edge; /* TILES: the variable along which turned operands lie; points on a side of a tile */
    uint8_t *tiled;   /* TILES: by instruction: it is a load of a turned operand */
} ty_cuda_layout;

/* All memory is the arena's. */
ty_cuda_layout ty_cuda_layout_of(const ty_cuda_kernel *kernel, ty_arena *arena);

#endif
