/* pages.c - see pages.h. */
#define _GNU_SOURCE
#include "base/pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAPPED_BYTES = 256 << 10 };

static void *map(size_t n_bytes)
{
    void *pages = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

void *ty_pages_new(size_t n_bytes)
{
    if (n_bytes > SIZE_MAX / 2)
        return NULL;
    if (n_bytes >= MAPPED_BYTES)
        return map(n_bytes);
    size_t align = n_bytes >= 65536 ? 4096 : 64, bytes = (n_bytes + align) / align * align;
    void *pages = aligned_alloc(align, bytes);
    return pages ? memset(pages, 0, bytes) : NULL;
}

void ty_pages_free(void *pages, size_t n_bytes)
{
    if (pages && n_bytes >= MAPPED_BYTES)
        munmap(pages, n_bytes);
    else
        free(pages);
}

/* The numbers of MADV_POPULATE_READ and MADV_POPULATE_WRITE, which older headers lack. */
enum { POPULATE_READ = 22, POPULATE_WRITE = 23, PAGE_BYTES = 4096, POPULATE_BYTES = 256 << 10 };

/* Whole pages inside only: the others belong to neighbours too. In short pieces: meanwhile no other thread can map
 * memory. */
static void populate(const void *at, size_t n_bytes, int how)
{
    uintptr_t first = ((uintptr_t)at + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    uintptr_t end = ((uintptr_t)at + n_bytes) / PAGE_BYTES * PAGE_BYTES;
    for (; first < end; first += POPULATE_BYTES)
        if (madvise((void *)first, end - first < POPULATE_BYTES ? end - first : POPULATE_BYTES, how) < 0)
            return;
}

void ty_pages_expect_copy(void *to, const void *from, size_t n_bytes)
{
    populate(to, n_bytes, POPULATE_WRITE);
    populate(from, n_bytes, POPULATE_READ);
}

void ty_pages_expect_update(void *at, size_t n_bytes)
{
    populate(at, n_bytes, POPULATE_WRITE);
}
