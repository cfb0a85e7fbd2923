/* compile.h - CUDA C to machine code by NVRTC, which needs no GPU.
 *
 *     ty_cuda_object o;
 *     if (ty_cuda_compile(text, 90, &arena, &o, err) < 0) ...      // sm_90; the error has NVRTC's log
 *     for (int i = 0; i < o.n_kernels; i++)      o.kernel[i].name, .registers, .spill_bytes
 */
#ifndef TY_TARGET_CUDA_COMPILE_H
#define TY_TARGET_CUDA_COMPILE_H

#include "base/arena.h"
#include "base/error.h"

#include <stddef.h>

/* A kernel as the assembler tells it. */
typedef struct ty_cuda_kernel_facts {
    const char *name;
    int registers;    /* of a thread */
    int spill_bytes;  /* of a thread: registers that did not fit, stored and loaded */
    int stack_bytes;  /* of a thread */
    int shared_bytes; /* of a block */
} ty_cuda_kernel_facts;

typedef struct ty_cuda_object {
    const void *cubin; /* ELF */
    size_t bytes;
    const ty_cuda_kernel_facts *kernel;
    int n_kernels;
} ty_cuda_object;

/* What decides the code beside text and architecture, in words: NVRTC's version and its options. NULL without NVRTC. */
const char *ty_cuda_compiler(ty_arena *a);

/* text: a head, a prelude, kernels. capability: 90 for sm_90. The object is the arena's. TY_E_NOT_FOUND without NVRTC,
 * TY_E_COMPILER with the first lines of its log. May run in several threads at a time once NVRTC is open. */
int ty_cuda_compile(const char *text, int capability, ty_arena *a, ty_cuda_object *out, ty_error *err);

#endif
