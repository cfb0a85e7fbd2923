/* build.h - all kernels of a program: as CUDA C, each once, and as machine code, compiled on several threads.
 *
 *     ty_ktexts texts = {.arena = &arena};
 *     ty_cuda_tape_of(plan, &texts, &arena, &tape, err);       for each plan
 *     ty_cuda_build(&texts, &(ty_cuda_build_options){.capability = 90, .threads = 2}, &arena, &code, err);
 *
 * A translation unit costs its kernels and, before them, the prelude; a program has as many units as threads compile.
 */
#ifndef TY_TARGET_CUDA_BUILD_H
#define TY_TARGET_CUDA_BUILD_H

#include "compiler/kernel/texts.h"
#include "compiler/passes/plan.h"
#include "compiler/target/cached.h"
#include "compiler/target/cuda/compile.h"

enum { TY_CUDA_MAX_UNITS = TY_CACHE_MAX_FILES };

typedef struct ty_cuda_build_options {
    int capability;        /* 90 for sm_90 */
    int threads;           /* that compile */
    int units;             /* translation units, at most TY_CUDA_MAX_UNITS; 0: as many as threads */
    const char *cache_dir; /* as of ty_cached (compiler/target/cached.h): dirs, max_bytes, note */
    int64_t cache_max_bytes;
    ty_buf *note;
    const ty_cache_field *fact; /* what the kernels come from, for explanations */
    int n_facts;
} ty_cuda_build_options;

typedef struct ty_cuda_code {
    ty_cuda_object object[TY_CUDA_MAX_UNITS];
    int n;
    bool cache_hit; /* then nobody knows registers: the objects have no facts */
} ty_cuda_code;

/* What stands around the texts. */
extern const ty_ktexts_words ty_cuda_words;

/* Leaves the kernels of plans in a folder for who compiles them elsewhere: <hash>.cu, where each follows
 * ty_cuda_words.lead, <hash>.txt, facts of their launches, and <hash>.tape, what the GPU is told to do in a run of each
 * (frame.h, tape.h). */
int ty_cuda_leave(const ty_plan *const *plans, int n_plans, bool in_order, const char *dir, ty_error *err);

/* Sorts the texts and compiles them, or finds them in the cache: the key is our version, NVRTC's and its options, the
 * architecture, and all texts with what stands around them, however they were cut into units. What comes out is the
 * arena's. */
int ty_cuda_build(ty_ktexts *texts, const ty_cuda_build_options *opt, ty_arena *a, ty_cuda_code *out, ty_error *err);
/* Whether the cache has them; opt->note says why not. */
int ty_cuda_is_built(ty_ktexts *texts, const ty_cuda_build_options *opt, ty_arena *a, bool *found, ty_error *err);

#endif
