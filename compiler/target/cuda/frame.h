/* frame.h - what a run asks for around the graph of its tape: the batch goes up in front of it, outputs come down
 * behind it.
 *
 *     ty_cuda_frame_of(plan, &tape, &memory, &arena, &frame)     any machine; memory: measured
 *     ty_cuda_frame_print(&frame, &tape, plan, &buf)             all of a run, with the tape in its place
 *
 *     batches up 402432: input 0, input 1        from the host's pinned memory to where batches arrive
 *     batches record arrived
 *     main await arrived
 *     main copy 402432: batch -> input 0         from there to where the tape reads
 *     main record taken
 *     main graph of
 *     tape: 15 calls, ...
 *     0 main linear by cublaslt ...
 *     ...
 *     main end of the graph
 *     main down 4: slab+4096 -> loss             to the host's pinned memory
 *     main record done
 *
 * Where it arrives and where outputs come down are two of each, which runs use in turn. The host waits for none of it;
 * what it waits for in front is that an earlier run is done, and a batch before the last one taken.
 */
#ifndef TY_TARGET_CUDA_FRAME_H
#define TY_TARGET_CUDA_FRAME_H

#include "compiler/target/cuda/memory.h"
#include "compiler/target/cuda/streams.h"
#include "compiler/target/cuda/tape.h"

typedef enum ty_cuda_ask_kind {
    TY_CUDA_ASK_UP,
    TY_CUDA_ASK_TAKE, /* from where the batch arrived to where it is read */
    TY_CUDA_ASK_GRAPH,
    TY_CUDA_ASK_DOWN,
    TY_CUDA_ASK_SYNC
} ty_cuda_ask_kind;

typedef struct ty_cuda_ask {
    ty_cuda_ask_kind kind;
    ty_cuda_stream stream; /* SYNC: as it says itself */
    int output;            /* DOWN: number in the frame's list */
    ty_cuda_sync sync;     /* SYNC */
} ty_cuda_ask;

typedef struct ty_cuda_frame {
    const ty_cuda_ask *ask;
    int n_asks, graph; /* graph: the number of the one that is the graph */
    const bool *reads; /* by input of the graph of operations */
    size_t first, end; /* bytes of the batch that go up: inputs that are read and what lies between them */
    const int *output; /* numbers of the graph's outputs that this tape has */
    int n_outputs;
} ty_cuda_frame;

/* What is made is the arena's. Where nothing is read, nothing goes up. */
void ty_cuda_frame_of(const ty_plan *plan, const ty_cuda_tape *tape, const ty_cuda_memory *memory, ty_arena *a,
                      ty_cuda_frame *out);
void ty_cuda_frame_print(const ty_cuda_frame *frame, const ty_cuda_tape *tape, const ty_plan *plan, ty_buf *out);

#endif
