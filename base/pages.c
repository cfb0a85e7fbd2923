/* pages.c - see pages.h. */
#define _GNU_SOURCE
#include "base/pages.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MAPPED_BYTES = 256 << 10, PAGE_BYTES = 4096, HUGE_BYTES = 2 << 20 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void *map(size_t n_bytes)
{
    void *pages = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

/* From a multiple of HUGE_BYTES on: what is mapped too much on both sides is given back. */
static void *map_aligned(size_t n_bytes)
{
    size_t whole = (n_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    char *all = map(whole + HUGE_BYTES);
    if (!all)
        return NULL;
    size_t before = (HUGE_BYTES - (uintptr_t)all % HUGE_BYTES) % HUGE_BYTES;
    if (before)
        munmap(all, before);
    munmap(all + before + whole, HUGE_BYTES - before);
    return all + before;
}

void *ty_pages_new(size_t n_bytes)
{
    if (n_bytes > SIZE_MAX / 2)
        return NULL;
    if (n_bytes >= HUGE_BYTES)
        return map_aligned(n_bytes);
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
enum { POPULATE_READ = 22, POPULATE_WRITE = 23, POPULATE_BYTES = 16 << 10 };

/* A huge page that is there takes 0.1 to 0.2 ms, its 512 small ones 0.6 ms; one that the host must find first 4 to 5
 * ms. Both come in runs of hundreds, but for single ones between them; so one slow page says little, and a few say
 * much. */
#define HUGE_SLOW_NS 1500000
enum { HUGE_SLOW_PAGES = 3 }; /* so many are enough */

static atomic_int huge_slow_pages;

/* Time that this thread has computed: it may have been stopped meanwhile. */
static int64_t computed_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int populate_huge(uintptr_t at)
{
    int64_t start = computed_ns();
    madvise((void *)at, HUGE_BYTES, MADV_HUGEPAGE);
    int rc = madvise((void *)at, HUGE_BYTES, POPULATE_WRITE);
    if (computed_ns() - start > HUGE_SLOW_NS)
        atomic_fetch_add_explicit(&huge_slow_pages, 1, memory_order_relaxed);
    return rc;
}

/* Whole pages inside only: the others belong to neighbours too. In short pieces, which end where a huge page may begin:
 * meanwhile no other thread can map or protect memory, and whoever waits for that sleeps unless it is over at once.
 * Beside pieces of 256 KiB the library of products, which maps every function it writes, took 0.4 s for those of a
 * GPT-2 and did nothing for most of it; beside 16 KiB 0.03 s. */
static void populate(const void *at, size_t n_bytes, int how)
{
    uintptr_t first = ((uintptr_t)at + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    uintptr_t end = ((uintptr_t)at + n_bytes) / PAGE_BYTES * PAGE_BYTES;
    int rc = 0;
    for (size_t part; first < end && rc == 0; first += part) {
        bool huge = how == POPULATE_WRITE && first % HUGE_BYTES == 0 && end - first >= HUGE_BYTES &&
                    atomic_load_explicit(&huge_slow_pages, memory_order_relaxed) < HUGE_SLOW_PAGES;
        part = huge ? HUGE_BYTES : least(least(end - first, POPULATE_BYTES), HUGE_BYTES - first % HUGE_BYTES);
        rc = huge ? populate_huge(first) : madvise((void *)first, part, how);
    }
}

size_t ty_pages_part(const void *at, size_t n_bytes)
{
    return least(n_bytes, HUGE_BYTES - (uintptr_t)at % HUGE_BYTES);
}

void ty_pages_expect_read(const void *at, size_t n_bytes)
{
    populate(at, n_bytes, POPULATE_READ);
}

void ty_pages_expect_update(void *at, size_t n_bytes)
{
    populate(at, n_bytes, POPULATE_WRITE);
}

/* ---- what was touched ---- */

/* Bits of a page in /proc/self/pagemap (Linux, Documentation/admin-guide/mm/pagemap.rst): it is in memory, or swapped
 * out. */
#define PAGEMAP_TOUCHED ((uint64_t)3 << 62)

static bool pagemap_is_empty(int file, uint64_t first, uint64_t end)
{
    uint64_t page[4096];
    for (size_t n; first < end; first += n) {
        n = least(sizeof page / sizeof *page, end - first);
        if (pread(file, page, n * sizeof *page, (off_t)(first * sizeof *page)) != (ssize_t)(n * sizeof *page))
            return false;
        for (size_t i = 0; i < n; i++)
            if (page[i] & PAGEMAP_TOUCHED)
                return false;
    }
    return true;
}

bool ty_pages_are_new(const void *at, size_t n_bytes)
{
    int file = n_bytes >= MAPPED_BYTES && sysconf(_SC_PAGESIZE) == PAGE_BYTES
                   ? open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)
                   : -1;
    if (file < 0)
        return false;
    uintptr_t first = (uintptr_t)at / PAGE_BYTES, end = ((uintptr_t)at + n_bytes + PAGE_BYTES - 1) / PAGE_BYTES;
    bool empty = pagemap_is_empty(file, first, end);
    close(file);
    return empty;
}
