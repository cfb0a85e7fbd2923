/* render.h - prints kernels as CUDA C.
 *
 * The text is C with a dozen words that a head defines: for the GPU in terms of CUDA (ty_cuda_head), for tests in terms
 * of fibers on the host (ty_grid_head), so that what a GPU would compute can be judged without one. No word of the
 * user's is in it.
 *
 *     TY_KERNEL(threads)  before the name      TY_THREAD, TY_BLOCK, TY_BLOCKS  numbers of the thread and of blocks
 *     TY_SHARED           memory of a block    TY_BARRIER(), TY_WARP_BARRIER()
 *     TY_SHUFFLE_F, _D, _L(v, mask)            the value of the lane whose number differs by mask: float, double, long
 *
 *     TY_GET16(to, from)      16 bytes, likewise 8 and 4, from aligned memory to an array of the thread
 *     TY_PUT16(from, to)      the other way; TY_ALIGNED before such an array
 *     TY_WIDE_KERNEL(threads) a kernel whose threads may have twice as many registers, TY_JOINED_KERNEL(threads) a
 *                             third more, TY_LONE_KERNEL(threads) one that has a multiprocessor for each block
 *     TY_UNROLL               before a loop; TY_UNROLL_4 before one of which four turns at a time have their loads in
 *                             flight, TY_UNROLL_1 before one of which only one shall
 *
 *     TY_GROUP                whether four warps multiply together (wgmma). Then: TY_GROUP_TILE(tile), ty_group_kept_,
 *                             _tiles_ and _turned_bf16, _f16 ask for products of 64 rows with tiles in shared memory,
 *                             TY_GROUP_FENCE() before them, TY_GROUP_COMMIT() behind a group of them, TY_GROUP_WAIT(n)
 *                             for all but the last n groups, TY_GROUP_HELD(c, n) of sums that were waited for,
 *                             TY_GROUP_SEES() before a barrier for what threads have written to tiles
 *     TY_GROUP_ROOM(name, n)  n 16-bit numbers of shared memory that the launch gives (group_bytes)
 *
 * How a kernel is laid over threads is in layout.h. All trees are fixed: results are the same in every run, for any
 * number of blocks.
 */
#ifndef TY_TARGET_CUDA_RENDER_H
#define TY_TARGET_CUDA_RENDER_H

#include "base/buf.h"
#include "compiler/target/cuda/layout.h"

/* What the launch of a kernel must be. */
typedef struct ty_cuda_launch {
    const char *form; /* how it is laid over threads, in a word */
    int threads;      /* of a block */
    int64_t blocks;   /* that have something to do; fewer walk in strides */
    bool has_barriers;
    int group_bytes; /* of shared memory, TY_GROUP_ROOM, where warps multiply together (ty_cuda_groups); or 0 */
    ty_cuda_room room;
    bool is_lone;
} ty_cuda_launch;

/* Whether on GPUs of that compute capability, 90 for 9.0, the four warps of a group multiply together (wgmma). */
static inline bool ty_cuda_groups(int capability)
{
    return capability == 90;
}

/* "TY_KERNEL", which stands in front of a kernel. */
const char *ty_cuda_word(ty_cuda_room room, bool is_lone);

/* What every translation unit begins with; the prelude of mathematics follows. */
extern const char ty_cuda_head[], ty_grid_head[];

/* Appends the kernel, from TY_KERNEL to its closing brace, under a name. One pointer a buffer that is not another's
 * alias, in their order. */
ty_cuda_launch ty_cuda_render_kernel(const ty_cuda_kernel *kernel, const char *name, ty_buf *out);

/* The same for the host, under the CPU's signature: a device function and what runs it on the grid, named after
 * TY_NAME, which must be defined. All of it is run where lo is 0. */
void ty_grid_render_kernel(const ty_kernel *k, const uint32_t *alias, const int64_t *base, ty_buf *out);

#endif
