/* tune.h - which of several ways to compute the same thing is quickest on this GPU: timed once, then kept.
 *
 *     ty_cuda_tuner t = {.dirs = "/var/cache/a", .device = "NVIDIA H200 sm_90", .left_ms = 500, .arena = &arena};
 *     int i = ty_cuda_tune(&t, "cublaslt 130100 TN 1x512x ...", &candidates);
 *
 * Candidates round differently, so which one is taken decides bits. So nothing is timed where the choice cannot be
 * kept: without a cache the first is taken, which is the library's own choice. Kept is a folder `algorithms` inside the
 * folders of the cache, an entry (compiler/target/cache.h) for each device and call; the bytes in it only say which of
 * the candidates it is, and an entry that names none of them is refused. What there was no time for is kept as well:
 * the next start of a training must not choose otherwise. So whoever has much to choose begins with what most of the
 * time is spent in (prepare.c).
 */
#ifndef TY_TARGET_CUDA_TUNE_H
#define TY_TARGET_CUDA_TUNE_H

#include "base/arena.h"
#include "base/error.h"

#include <stddef.h>

typedef struct ty_cuda_tuned ty_cuda_tuned;

typedef struct ty_cuda_tuner {
    const char *dirs;   /* as of ty_cached; NULL or empty: nothing is timed */
    const char *device; /* what is timed on */
    double left_ms;     /* that timing may still take; what comes later takes the first candidate, for good */
    ty_arena *arena;
    const ty_cuda_tuned *tuned; /* what is known already: NULL, or of another one that outlives this one */
} ty_cuda_tuner;

typedef struct ty_cuda_candidates {
    int n;
    const void *identity; /* n times `bytes` bytes, by which one is known again */
    size_t bytes;
    /* Milliseconds of a run, after one to get ready. What fails is not taken. */
    int (*time)(void *ctx, int candidate, double *ms, ty_error *err);
    void *ctx;
} ty_cuda_candidates;

/* The number of the quickest. A candidate is taken before the first only if it is quicker by more than timing errs.
 * what: all that decides, library and its version included; no tab, no line end. */
int ty_cuda_tune(ty_cuda_tuner *t, const char *what, const ty_cuda_candidates *c);

#endif
