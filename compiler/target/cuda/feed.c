/* feed.c - see feed.h. */
#include "compiler/target/cuda/feed.h"

#include <stdint.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

/* One thread copies 8 to 10 GB a second, a GPU takes 25 to 50. */
enum { FILL_PART = 1 << 20, FILL_LEAST = 4, FILL_THREADS = 8 };

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

#ifdef __x86_64__
enum { LINES = 4 * sizeof(__m256i) };

/* `to` is a multiple of a vector, `bytes` one of LINES. (Vectors of half the size are no quicker than memcpy.) */
__attribute__((target("avx2"))) static void stream(char *to, const char *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += LINES) {
        const __m256i *src = (const __m256i *)(const void *)(from + at);
        __m256i *dst = (__m256i *)(void *)(to + at);
        __m256i a = _mm256_loadu_si256(src), b = _mm256_loadu_si256(src + 1);
        __m256i c = _mm256_loadu_si256(src + 2), d = _mm256_loadu_si256(src + 3);
        _mm256_stream_si256(dst, a), _mm256_stream_si256(dst + 1, b);
        _mm256_stream_si256(dst + 2, c), _mm256_stream_si256(dst + 3, d);
    }
    _mm_sfence();
}

static void copy_past_caches(char *to, const char *from, size_t bytes)
{
    bool can = __builtin_cpu_supports("avx2") && (uintptr_t)to % sizeof(__m256i) == 0;
    size_t streamed = can ? bytes / LINES * LINES : 0;
    if (streamed)
        stream(to, from, streamed);
    memcpy(to + streamed, from + streamed, bytes - streamed);
}
#else
static void copy_past_caches(char *to, const char *from, size_t bytes)
{
    memcpy(to, from, bytes);
}
#endif

void ty_feed_fill(char *to, const void *from, size_t bytes, int threads)
{
    size_t parts = (bytes + FILL_PART - 1) / FILL_PART;
    threads = threads < FILL_THREADS ? threads : FILL_THREADS;
    if (parts <= 1) {
        memcpy(to, from, bytes);
        return;
    }
#pragma omp parallel for schedule(static) num_threads(threads) if (parts >= FILL_LEAST && threads > 1)
    for (size_t i = 0; i < parts; i++) {
        size_t first = i * FILL_PART, left = bytes - first;
        copy_past_caches(to + first, (const char *)from + first, left < FILL_PART ? left : FILL_PART);
    }
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
