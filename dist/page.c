/* page.c - a page is one struct in shared memory.
 *
 * Every field has one writer and is stored whole (relaxed atomics are plain stores here), so there is nothing to lock.
 * What belongs together, an operation and its texts, is written before the number that makes it known, and a reader
 * looks at that number again afterwards: if it changed, the texts are of two operations and are left out.
 */
#define _GNU_SOURCE
#include "dist/page.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE_MAGIC UINT64_C(0x3265676150797274) /* "tryPage2": the layout's name and version */

typedef struct page_stream {
    uint64_t begun, ended, slot; /* slot: of the ring, where the last one begun lies */
    int64_t begun_us, n_bytes;
    int32_t bucket;
    char kind[TY_PAGE_KIND_BYTES], name[TY_PAGE_NAME_BYTES];
} page_stream;

struct ty_page {
    uint64_t magic;
    int32_t phase, has_error, aborted;
    int64_t phase_us, step;
    char error[TY_PAGE_ERROR_BYTES];
    page_stream streams[TY_PAGE_STREAMS];
    uint64_t n_ops; /* ever put into the ring */
    ty_page_op ring[TY_PAGE_RING];
};

static const char *const phase_names[TY_PHASES] = {
    [TY_PHASE_NONE] = "unknown", [TY_PHASE_START] = "start",       [TY_PHASE_COMPILE] = "compile",
    [TY_PHASE_DATA] = "data",    [TY_PHASE_STEP] = "step",         [TY_PHASE_EVALUATE] = "evaluate",
    [TY_PHASE_SAVE] = "save",    [TY_PHASE_FINISHED] = "finished", [TY_PHASE_SERVE] = "serve",
};

#define PUT(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)
#define GET(field)        __atomic_load_n(&(field), __ATOMIC_RELAXED)

const char *ty_phase_name(ty_phase phase)
{
    return (unsigned)phase < TY_PHASES ? phase_names[phase] : phase_names[TY_PHASE_NONE];
}

/* Texts are shared bytes that may be read while they are written: byte by byte, so that each is either old or new. */
static void put_text(char *to, const char *from, size_t n)
{
    size_t i = 0;
    for (; from && from[i] && i + 1 < n; i++)
        PUT(to[i], from[i]);
    PUT(to[i], 0);
}

static void get_text(char *to, const char *from, size_t n)
{
    size_t i = 0;
    for (char c; i + 1 < n && (c = GET(from[i])); i++)
        to[i] = c;
    to[i] = 0;
}

static int map_page(int fd, ty_page **page, ty_error *err)
{
    void *at = mmap(NULL, sizeof(ty_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return ty_error_errno(err, TY_E_NONE, errno, "progress page: cannot map it");
    *page = at;
    return 0;
}

int ty_page_new(ty_page **page, int *fd, ty_error *err)
{
    int made = memfd_create("trainyard-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "progress page: cannot make it");
    /* Sealed: a rank that shortened it would turn our next look at it into a SIGBUS. */
    if (ftruncate(made, sizeof(ty_page)) < 0 || fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0 ||
        map_page(made, page, err) < 0) {
        int rc = ty_error_errno(err, TY_E_NONE, errno, "progress page: cannot make it");
        close(made);
        return rc;
    }
    (*page)->step = -1;
    (*page)->phase_us = ty_clock_us();
    (*page)->magic = PAGE_MAGIC;
    *fd = made;
    return 0;
}

void ty_page_path(int fd, char out[64])
{
    snprintf(out, 64, "/proc/%ld/fd/%d", (long)getpid(), fd);
}

int ty_page_open(const char *path, ty_page **page, ty_error *err)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "progress page: cannot open \"%s\"", path);
    struct stat status;
    ty_page *opened = NULL;
    int rc = 0;
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size != (off_t)sizeof(ty_page))
        rc = ty_error_set(err, TY_E_DATA, "progress page: \"%s\" is not one of this version", path);
    if (rc == 0)
        rc = map_page(fd, &opened, err);
    close(fd);
    if (rc == 0 && opened->magic != PAGE_MAGIC) {
        ty_page_close(opened);
        rc = ty_error_set(err, TY_E_DATA, "progress page: \"%s\" is not one of this version", path);
    }
    if (rc == 0)
        *page = opened;
    return rc;
}

void ty_page_abort(ty_page *page)
{
    if (page)
        __atomic_store_n(&page->aborted, 1, __ATOMIC_RELEASE);
}

bool ty_page_is_aborted(const ty_page *page)
{
    return page && __atomic_load_n(&page->aborted, __ATOMIC_ACQUIRE);
}

ty_page *ty_page_from_environment(void)
{
    const char *path = getenv(TY_PAGE_VARIABLE);
    ty_page *page = NULL;
    if (path && path[0])
        ty_page_open(path, &page, NULL);
    return page;
}

void ty_page_close(ty_page *page)
{
    if (page)
        munmap(page, sizeof *page);
}

void ty_page_phase(ty_page *page, ty_phase phase)
{
    if (!page || GET(page->phase) == (int32_t)phase)
        return;
    PUT(page->phase_us, ty_clock_us());
    PUT(page->phase, (int32_t)phase);
}

void ty_page_step(ty_page *page, int64_t step)
{
    if (page)
        PUT(page->step, step);
}

void ty_page_error(ty_page *page, const char *text)
{
    if (!page || GET(page->has_error))
        return;
    put_text(page->error, text, sizeof page->error);
    __atomic_store_n(&page->has_error, 1, __ATOMIC_RELEASE);
}

static void ring_put(ty_page *page, page_stream *s, int stream, uint64_t number, const char *kind, const char *name)
{
    uint64_t slot = __atomic_fetch_add(&page->n_ops, 1, __ATOMIC_ACQ_REL); /* streams share the ring */
    ty_page_op *op = &page->ring[slot % TY_PAGE_RING];
    PUT(op->number, 0); /* not one for now */
    PUT(op->ended_us, 0);
    PUT(op->begun_us, GET(s->begun_us));
    PUT(op->step, GET(page->step));
    PUT(op->n_bytes, GET(s->n_bytes));
    PUT(op->stream, stream);
    PUT(op->bucket, GET(s->bucket));
    put_text(op->kind, kind, sizeof op->kind);
    put_text(op->name, name, sizeof op->name);
    __atomic_store_n(&op->number, number, __ATOMIC_RELEASE);
    PUT(s->slot, slot);
}

void ty_page_begin(ty_page *page, int stream, uint64_t number, const char *kind, const char *name, int bucket,
                   int64_t n_bytes)
{
    if (!page || stream < 0 || stream >= TY_PAGE_STREAMS)
        return;
    page_stream *s = &page->streams[stream];
    PUT(s->begun_us, ty_clock_us());
    PUT(s->n_bytes, n_bytes);
    PUT(s->bucket, (int32_t)bucket);
    put_text(s->kind, kind, sizeof s->kind);
    put_text(s->name, name, sizeof s->name);
    ring_put(page, s, stream, number, kind, name);
    __atomic_store_n(&s->begun, number, __ATOMIC_RELEASE);
}

void ty_page_end(ty_page *page, int stream)
{
    if (!page || stream < 0 || stream >= TY_PAGE_STREAMS)
        return;
    page_stream *s = &page->streams[stream];
    uint64_t number = GET(s->begun), slot = GET(s->slot);
    ty_page_op *op = &page->ring[slot % TY_PAGE_RING];
    if (GET(op->number) == number && GET(op->stream) == stream) /* else others have overtaken it by a whole round */
        PUT(op->ended_us, ty_clock_us());
    __atomic_store_n(&s->ended, number, __ATOMIC_RELEASE);
}

/* What was read before stays before what is read now: whether it was whole. ThreadSanitizer knows no fences, and misses
 * none, since every access is atomic. */
static void reads_before(void)
{
#ifndef __SANITIZE_THREAD__
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}

static int64_t age_ms(int64_t now_us, int64_t then_us)
{
    return then_us > 0 && then_us < now_us ? (now_us - then_us) / 1000 : 0;
}

static void read_stream(const page_stream *s, int64_t now_us, ty_page_stream_view *out)
{
    uint64_t begun = __atomic_load_n(&s->begun, __ATOMIC_ACQUIRE);
    *out = (ty_page_stream_view){.ended = GET(s->ended),
                                 .begun = begun,
                                 .begun_ms = age_ms(now_us, GET(s->begun_us)),
                                 .n_bytes = GET(s->n_bytes),
                                 .bucket = GET(s->bucket)};
    if (out->ended > begun)
        out->ended = begun;
    get_text(out->kind, s->kind, sizeof out->kind);
    get_text(out->name, s->name, sizeof out->name);
    reads_before();
    if (GET(s->begun) != begun || GET(s->begun_us) == 0)
        out->kind[0] = out->name[0] = 0;
}

void ty_page_read(const ty_page *page, ty_page_view *out)
{
    *out = (ty_page_view){.step = -1};
    if (!page)
        return;
    int64_t now_us = ty_clock_us();
    int32_t phase = GET(page->phase);
    out->phase = phase > 0 && phase < TY_PHASES ? (ty_phase)phase : TY_PHASE_NONE;
    out->phase_ms = age_ms(now_us, GET(page->phase_us));
    out->step = GET(page->step);
    out->has_error = __atomic_load_n(&page->has_error, __ATOMIC_ACQUIRE) != 0;
    if (out->has_error)
        get_text(out->error, page->error, sizeof out->error);
    for (int i = 0; i < TY_PAGE_STREAMS; i++)
        read_stream(&page->streams[i], now_us, &out->streams[i]);
}

/* False if the slot holds no operation, or one that is being replaced right now. */
static bool ring_get(const ty_page_op *op, ty_page_op *out)
{
    uint64_t number = __atomic_load_n(&op->number, __ATOMIC_ACQUIRE);
    *out = (ty_page_op){.number = number,
                        .step = GET(op->step),
                        .n_bytes = GET(op->n_bytes),
                        .begun_us = GET(op->begun_us),
                        .ended_us = GET(op->ended_us),
                        .stream = GET(op->stream),
                        .bucket = GET(op->bucket)};
    get_text(out->kind, op->kind, sizeof out->kind);
    get_text(out->name, op->name, sizeof out->name);
    reads_before();
    return number != 0 && GET(op->number) == number;
}

int ty_page_ring(const ty_page *page, ty_page_op *out, int max)
{
    if (!page || max <= 0)
        return 0;
    uint64_t end = __atomic_load_n(&page->n_ops, __ATOMIC_ACQUIRE);
    uint64_t keep = max < TY_PAGE_RING ? (uint64_t)max : TY_PAGE_RING, start = end > keep ? end - keep : 0;
    int n = 0;
    for (uint64_t i = start; i < end; i++)
        n += ring_get(&page->ring[i % TY_PAGE_RING], &out[n]);
    return n;
}
