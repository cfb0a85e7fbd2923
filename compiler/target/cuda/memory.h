/* memory.h - what a program takes of a GPU's memory: measured from its plans, before a driver is asked for anything,
 * then got all at once.
 *
 *     ty_cuda_memory_measure(&m, plans, tapes, n, &arena)     any machine
 *     ty_cuda_memory_get(&m, &gpu, err)                       all of it; contents undefined
 *     ty_cuda_memory_at(&m, &place)                           the address of a place of a tape
 *
 * One slab for the temporaries of all tapes, the states, constants once each, the batch that a step reads and those
 * that are on their way (feed.h), a workspace that library calls share (ty_cuda_library_workspace).
 */
#ifndef TY_TARGET_CUDA_MEMORY_H
#define TY_TARGET_CUDA_MEMORY_H

#include "compiler/target/cuda/gpu.h"
#include "compiler/target/cuda/tape.h"

typedef enum ty_cuda_block_kind {
    TY_CUDA_STATES,
    TY_CUDA_SLAB,
    TY_CUDA_CONSTANTS,
    TY_CUDA_INPUTS,
    TY_CUDA_STAGED,  /* batches on their way */
    TY_CUDA_SPARE,   /* results that nobody reads go here */
    TY_CUDA_SCRATCH, /* of calls, one after the other */
    TY_CUDA_ROOM,    /* of sums in the order of the replicas, one after the other beside them */
    TY_CUDA_WORKSPACE,
    TY_CUDA_N_BLOCKS
} ty_cuda_block_kind;

/* Memory of several things in one piece. */
typedef struct ty_cuda_block {
    CUdeviceptr at;
    size_t bytes;
    size_t *offset; /* of each state, constant, input */
    int n;
    bool is_lent; /* another program's */
} ty_cuda_block;

typedef struct ty_cuda_memory {
    ty_cuda_block block[TY_CUDA_N_BLOCKS];
    const ty_val *constant; /* each once, over all tapes: those that calls read and those that are outputs */
} ty_cuda_memory;

/* tapes[i] is of plans[i]; all of one graph. What is measured is the arena's. */
void ty_cuda_memory_measure(ty_cuda_memory *m, const ty_plan *const *plans, const ty_cuda_tape *const *tapes, int n,
                            ty_arena *a);
/* What another program on the GPU has got, if that is large enough: states, which are the same, and what no run leaves
 * anything in. Before memory is got. */
void ty_cuda_memory_borrow(ty_cuda_memory *m, const ty_cuda_memory *from);
/* Without what is lent. */
size_t ty_cuda_memory_bytes(const ty_cuda_memory *m);
int ty_cuda_memory_get(ty_cuda_memory *m, const ty_gpu *gpu, ty_error *err);
/* After a failure too. */
void ty_cuda_memory_free(ty_cuda_memory *m, const ty_gpu *gpu);
/* A place of kind NONE is a result that nobody reads, or an operand that the call does not look at. */
CUdeviceptr ty_cuda_memory_at(const ty_cuda_memory *m, const ty_place *at);

/* Adds room for so many bytes to a block and returns where it begins. */
size_t ty_cuda_block_add(ty_cuda_block *b, size_t bytes);

#endif
