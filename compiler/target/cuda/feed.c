/* feed.c - see feed.h. */
#include "compiler/target/cuda/feed.h"

static int feed_status(const ty_feed *f, unsigned status, ty_error *err)
{
    return ty_gpu_status(f->gpu, status, "copying a batch to the GPU", err);
}

int ty_feed_open(ty_feed *f, const ty_gpu *gpu, CUdeviceptr staged, size_t bytes, ty_error *err)
{
    *f = (ty_feed){.gpu = gpu, .bytes = bytes, .staged = staged};
    if (bytes == 0)
        return 0;
    unsigned status = gpu->cu->cuStreamCreate(&f->stream, TY_CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < TY_FEED_SLOTS && status == TY_CU_SUCCESS; i++) {
        void *at = NULL;
        status = gpu->cu->cuMemHostAlloc(&at, bytes, 0);
        f->pinned[i] = at;
        if (status == TY_CU_SUCCESS)
            status = gpu->cu->cuEventCreate(&f->arrived[i], TY_CU_EVENT_DISABLE_TIMING);
        if (status == TY_CU_SUCCESS)
            status = gpu->cu->cuEventCreate(&f->taken[i], TY_CU_EVENT_DISABLE_TIMING | TY_CU_EVENT_BLOCKING_SYNC);
    }
    return ty_gpu_status(gpu, status, "pinning memory for batches", err);
}

void ty_feed_close(ty_feed *f)
{
    for (int i = 0; i < TY_FEED_SLOTS; i++) {
        if (f->arrived[i])
            f->gpu->cu->cuEventDestroy_v2(f->arrived[i]);
        if (f->taken[i])
            f->gpu->cu->cuEventDestroy_v2(f->taken[i]);
        if (f->pinned[i])
            f->gpu->cu->cuMemFreeHost(f->pinned[i]);
    }
    if (f->stream)
        f->gpu->cu->cuStreamDestroy_v2(f->stream);
    *f = (ty_feed){.gpu = NULL};
}

int ty_feed_slot(const ty_feed *f)
{
    return (int)(f->n % TY_FEED_SLOTS);
}

int ty_feed_room(ty_feed *f, char **out, ty_error *err)
{
    int slot = ty_feed_slot(f);
    *out = f->pinned[slot];
    return f->n < TY_FEED_SLOTS ? 0 : feed_status(f, f->gpu->cu->cuEventSynchronize(f->taken[slot]), err);
}

static CUdeviceptr feed_staged(const ty_feed *f)
{
    return f->staged + (CUdeviceptr)ty_feed_slot(f) * f->bytes;
}

int ty_feed_up(const ty_feed *f, size_t first, size_t end, CUstream stream, ty_error *err)
{
    return feed_status(f,
                       f->gpu->cu->cuMemcpyHtoDAsync_v2(feed_staged(f) + first, f->pinned[ty_feed_slot(f)] + first,
                                                        end - first, stream),
                       err);
}

int ty_feed_take(const ty_feed *f, CUdeviceptr to, size_t first, size_t end, CUstream stream, ty_error *err)
{
    return feed_status(f, f->gpu->cu->cuMemcpyDtoDAsync_v2(to + first, feed_staged(f) + first, end - first, stream),
                       err);
}

void ty_feed_next(ty_feed *f)
{
    f->n++;
}
