/* memory.c - memory and copies of the stand-in driver: addresses of the device are addresses of the host. See driver.h.
 */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BLOCKS = 1024 };

typedef struct block {
    char *at;
    size_t bytes;
    bool host;
    int device; /* that asked for it */
} block;

static block blocks[MAX_BLOCKS];
static int n_blocks;

/* The piece that has these bytes, of this device or of the host; at NULL: there is none. */
static block find_block(const void *at, size_t bytes)
{
    block found = {0};
    pthread_mutex_lock(&shared);
    for (int i = 0; i < n_blocks; i++)
        if ((const char *)at >= blocks[i].at && (const char *)at + bytes <= blocks[i].at + blocks[i].bytes)
            found = blocks[i];
    pthread_mutex_unlock(&shared);
    return found.host || found.device == number_now() ? found : (block){0};
}

void fake_check(const void *at, size_t bytes, const char *what)
{
    if (find_block(at, bytes).at)
        return;
    fake_wrong("%s: %zu bytes at %p are not inside memory of the device or pinned memory", what, bytes, at);
}

static unsigned get(size_t bytes, bool host, void **out)
{
    no_capture("memory is asked for");
    if (!host && now->used_bytes + now->held_bytes + bytes > fake_gpu_bytes(number_now()))
        return TY_CU_ERROR_OUT_OF_MEMORY;
    if (n_blocks == MAX_BLOCKS || bytes == 0)
        fake_wrong("memory of %zu bytes, piece %d", bytes, n_blocks);
    size_t room = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    *out = aligned_alloc(ALIGN, room);
    if (host || !runs_nothing())
        memset(*out, 0xA5, room); /* nobody may count on zeros */
    pthread_mutex_lock(&shared);
    blocks[n_blocks++] = (block){*out, bytes, host, number_now()};
    pthread_mutex_unlock(&shared);
    now->used_bytes += host ? 0 : bytes;
    trace("%s %zu\n", host ? "pin" : "alloc", bytes);
    return TY_CU_SUCCESS;
}

static bool is_host(const void *at)
{
    return find_block(at, 1).host;
}

static unsigned give(void *at, bool host)
{
    no_capture("memory is given back");
    run_all(); /* as a driver does */
    block b = find_block(at, 1);
    if (b.at != at || b.host != host || b.device != number_now())
        fake_wrong("memory that is not there is given back");
    pthread_mutex_lock(&shared);
    for (int i = 0; i < n_blocks; i++)
        if (blocks[i].at == at)
            blocks[i] = blocks[--n_blocks];
    pthread_mutex_unlock(&shared);
    now->used_bytes -= host ? 0 : b.bytes;
    trace("%s %zu\n", host ? "unpin" : "free", b.bytes);
    free(at);
    return TY_CU_SUCCESS;
}

unsigned cuMemAlloc_v2(CUdeviceptr *at, size_t bytes)
{
    void *p = NULL;
    unsigned status = get(bytes, false, &p);
    *at = (CUdeviceptr)(uintptr_t)p;
    return status;
}

unsigned cuMemFree_v2(CUdeviceptr at)
{
    return give((void *)(uintptr_t)at, false);
}

unsigned cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
    (void)flags;
    return get(bytes, true, at);
}

unsigned cuMemFreeHost(void *at)
{
    return give(at, true);
}

void no_memory_is_left(int device)
{
    for (int i = 0; i < n_blocks; i++)
        if (blocks[i].device == device)
            fake_wrong("%zu bytes of memory are left behind on device %d", blocks[i].bytes, device);
}

unsigned cuMemGetInfo_v2(size_t *free, size_t *total)
{
    *total = fake_gpu_bytes(number_now());
    *free = *total - now->used_bytes - now->held_bytes;
    return TY_CU_SUCCESS;
}

/* ---- copies ---- */

typedef struct copy_work {
    void *to;
    const void *from;
    size_t bytes;
} copy_work;

static void run_copy(const void *given)
{
    const copy_work *w = given;
    memmove(w->to, w->from, w->bytes);
}

/* host: the side that is the host's, or NULL. Where it is not pinned, a driver waits. */
static unsigned copy(void *to, const void *from, size_t bytes, CUstream stream, const char *how, const void *host)
{
    char text[NAME_BYTES];
    bool unpinned = host && !is_host(host);
    snprintf(text, sizeof text, "%s %zu%s", how, bytes, unpinned ? " unpinned" : "");
    if (unpinned)
        no_capture("memory that is not pinned is copied");
    do_work(stream, run_copy, &(copy_work){to, from, bytes}, sizeof(copy_work), text);
    if (unpinned)
        run_until(stream, stream->issued);
    return TY_CU_SUCCESS;
}

unsigned cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    fake_check((void *)(uintptr_t)to, bytes, "copy to the device");
    return copy((void *)(uintptr_t)to, from, bytes, stream, "up", from);
}

unsigned cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    fake_check((void *)(uintptr_t)from, bytes, "copy from the device");
    return copy(to, (void *)(uintptr_t)from, bytes, stream, "down", to);
}

typedef struct set_work {
    void *to;
    int value;
    size_t bytes;
} set_work;

static void run_set(const void *given)
{
    const set_work *w = given;
    memset(w->to, w->value, w->bytes);
}

unsigned cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
    char text[NAME_BYTES];
    fake_check((void *)(uintptr_t)to, bytes, "set on the device");
    snprintf(text, sizeof text, "set %zu", bytes);
    do_work(stream, run_set, &(set_work){(void *)(uintptr_t)to, value, bytes}, sizeof(set_work), text);
    return TY_CU_SUCCESS;
}

unsigned cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    fake_check((void *)(uintptr_t)to, bytes, "copy on the device");
    fake_check((void *)(uintptr_t)from, bytes, "copy on the device");
    return copy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes, stream, "copy", NULL);
}
