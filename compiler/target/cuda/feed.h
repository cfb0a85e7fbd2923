/* feed.h - batches on their way to a GPU: while a step computes, the next one's batch is copied.
 *
 *     ty_feed_open(&feed, &gpu, staged, bytes, err)
 *     for (each step) {
 *         ty_feed_room(&feed, &room, err)                         pinned memory of the host
 *         ty_feed_fill(room, batch, bytes, threads)
 *         ty_feed_up(&feed, first, end, feed.stream, err)         bytes first ... end-1 go to the GPU
 *         ty_feed_take(&feed, to, first, end, gpu.stream, err)    and from where they arrive to `to`
 *         ty_feed_next(&feed)
 *     }
 *
 * The host fills one of two pieces of pinned memory; a stream of its own copies it to the piece of the GPU's memory
 * that goes with it, and an event lets the GPU's work wait for that. The work itself begins with a copy on the GPU to
 * where the step reads, whose addresses never change. The host waits only where it is two batches ahead. The order of
 * the copies and the marks between them is a run's (frame.h).
 */
#ifndef TY_TARGET_CUDA_FEED_H
#define TY_TARGET_CUDA_FEED_H

#include "compiler/target/cuda/gpu.h"

enum { TY_FEED_SLOTS = 2 };

typedef struct ty_feed {
    const ty_gpu *gpu;
    CUstream stream; /* of the copies */
    size_t bytes;    /* of a batch */
    char *pinned[TY_FEED_SLOTS];
    CUdeviceptr staged;                                   /* slot by slot */
    CUevent arrived[TY_FEED_SLOTS], taken[TY_FEED_SLOTS]; /* TY_CUDA_EVENT_ARRIVED, _TAKEN */
    long n;                                               /* sent */
} ty_feed;

/* staged: TY_FEED_SLOTS times `bytes` of the GPU's memory. After a failure too it is to be closed. */
int ty_feed_open(ty_feed *feed, const ty_gpu *gpu, CUdeviceptr staged, size_t bytes, ty_error *err);
void ty_feed_close(ty_feed *feed);
/* Memory that nothing reads any more. */
int ty_feed_room(ty_feed *feed, char **out, ty_error *err);
/* Copies `bytes` of a batch into such memory, by a few threads at most. What is large goes past the caches, which
 * spares the memory reading what is overwritten anyway: on a busy Xeon 1.1 to 1.25 times as fast as memcpy. */
void ty_feed_fill(char *to, const void *from, size_t bytes, int threads);
/* Of the batch at hand. */
int ty_feed_slot(const ty_feed *feed);
int ty_feed_up(const ty_feed *feed, size_t first, size_t end, CUstream stream, ty_error *err);
int ty_feed_take(const ty_feed *feed, CUdeviceptr to, size_t first, size_t end, CUstream stream, ty_error *err);
/* All of it was asked for. */
void ty_feed_next(ty_feed *feed);

#endif
