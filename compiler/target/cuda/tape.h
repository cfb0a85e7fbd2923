/* tape.h - what a GPU does in one run, in order: kernels launched, library calls, copies, and where their operands lie.
 *
 *     ty_cuda_tape_of(plan, in_order, &texts, &arena, &tape, err)     any machine; adds what is launched to texts
 *     ty_cuda_tape_print(&tape, plan, &buf)
 *
 * All calls go to one stream, so each sees what those before it have written, but for exchanges with other replicas:
 * those go on beside what follows, on a stream of their own, until a call touches their memory, in front of which
 * stands a wait (pending.h). The host waits for nothing and nothing is allocated between calls: a tape can be captured
 * into one CUDA graph. Places are offsets into a few pieces of memory that outlive the tape (the slab, states, inputs,
 * constants).
 *
 *     tape: 6 calls, 1 kernels, 0 constants, slab 8192
 *     0 main k0 flat<<<32,256>>> input 0, slab | net.1/linear (Gemm #7)
 *     1 main dot by cublaslt TN 1x512x128x784 in f32 ...: input 0, state 0 -> slab+4096 | net.1/linear (Gemm #7)
 *     2 main record ready
 *     2 exchanges await ready
 *     2 exchanges all_reduce #0 of 2 f32[512]: slab+4096 -> slab+4096 | update
 *     2 exchanges record over 0
 *     3 main copy 4: slab -> state 2+8
 *     4 main await over 0
 *     ...
 *
 * Kernels and, in the text, constants are numbered as they first appear. A launch asks for no shared memory: what a
 * kernel needs it declares itself.
 */
#ifndef TY_TARGET_CUDA_TAPE_H
#define TY_TARGET_CUDA_TAPE_H

#include "compiler/kernel/texts.h"
#include "compiler/passes/plan.h"
#include "compiler/target/cuda/in_order.h"
#include "compiler/target/cuda/render.h"
#include "compiler/target/cuda/streams.h"

/* EXCHANGE: with other replicas, begun; WAIT: until one is over, which is what stands in front of it and nothing else.
 */
typedef enum ty_cuda_call_kind {
    TY_CUDA_LAUNCH,
    TY_CUDA_LIBRARY,
    TY_CUDA_COPY,
    TY_CUDA_EXCHANGE,
    TY_CUDA_WAIT
} ty_cuda_call_kind;

typedef struct ty_cuda_call {
    ty_cuda_call_kind kind;
    ty_cuda_stream stream;
    const ty_cuda_sync *before, *after; /* marks and waits, of whatever stream, around the call */
    int n_before, n_after;
    int kernel;            /* LAUNCH, EXCHANGE in order: number in the tape's list */
    ty_cuda_launch launch; /* of these; threads 0: nothing is launched */
    uint32_t node;         /* LIBRARY, EXCHANGE */
    int exchange;          /* EXCHANGE: number, from 0 */
    ty_in_order in_order;  /* EXCHANGE that launches */
    size_t bytes; /* COPY; LAUNCH: that must move at least, of a kernel written by hand its operands and results */
    /* LAUNCH: what its pointers point at; LIBRARY: operands, then results, of kind NONE where there is no memory (an
     * operand that the call fills in by itself, a result that nobody reads); COPY: to, from; EXCHANGE: from, to. */
    const ty_place *at;
    int n_at, n_in;  /* n_in: how many are operands, of LIBRARY */
    int unit;        /* position in the plan's order; its length and more: copies at the end */
    const int *also; /* LAUNCH: those of more that is computed by it (join.h) */
    int n_also;
    const char *origin;
} ty_cuda_call;

typedef struct ty_cuda_tape {
    const ty_cuda_call *call;
    int n_calls;
    const uint64_t *kernel; /* texts of the kernels, by number */
    int n_kernels;
    int n_exchanges;
    const ty_val *constant; /* that calls read, each once; places of kind CONST have the value as `index` */
    int n_constants;
    int64_t scratch_bytes; /* of the call that needs most: places of kind SCRATCH */
    size_t room_bytes;     /* of the exchange that needs most, one after the other */
} ty_cuda_tape;

/* in_order: replicas add up by in_order.h. texts, arena: of the caller; the tape is the arena's. plan: checked; must
 * outlive the tape. */
int ty_cuda_tape_of(const ty_plan *plan, bool in_order, ty_ktexts *texts, ty_arena *a, ty_cuda_tape *out,
                    ty_error *err);
void ty_cuda_tape_print(const ty_cuda_tape *tape, const ty_plan *plan, ty_buf *out);
/* `slab+4096`, as in the text of the tape. */
void ty_cuda_tape_print_place(const ty_cuda_tape *tape, const ty_place *at, ty_buf *out);
/* A line a launch: function, form, threads of a block, blocks, bytes that must move at least, origin; tabs between. */
void ty_cuda_tape_print_facts(const ty_cuda_tape *tape, ty_buf *out);

#endif
