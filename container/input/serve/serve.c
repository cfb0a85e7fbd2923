/* serve.c - FIFOs made, opened, written, closed and taken away.
 *
 * The next epoch's FIFO is made before this one is closed, so that a reader finds it at once; whoever must cope with
 * one that comes late has to be tested otherwise.
 */
#define _GNU_SOURCE
#include "container/input/serve/serve.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "container/input/bytes.h"
#include "container/input/inflate.h"
#include "container/input/serve/objects.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SERVE_BLOCK_BYTES ((size_t)1 << 20)
#define RECORDIO_MAGIC    0xced7230aU
#define RECORDIO_MAX      (((size_t)1 << 29) - 4) /* of a part: below 2^29, and a multiple of 4 */

/* GONE: the reader has closed its end, or it is time to stop; the epoch is over. */
typedef enum serve_result { SERVE_FAILED = -1, SERVE_DONE, SERVE_GONE } serve_result;

typedef struct serve {
    const ty_serve_config *config;
    ty_serve_told *told;
    serve_object *object;
    int64_t n;
    uint32_t *order; /* [n] */
    uint8_t *block, *plain;
    int fd;
    char path[2][4096]; /* FIFOs of this epoch and the next, by e % 2; "": none */
} serve;

static bool serve_is_over(const serve *s)
{
    return s->config->stop != NULL && *s->config->stop != 0;
}

/* ---- bytes ---- */

static serve_result serve_write(serve *s, const void *bytes, size_t n, ty_error *err)
{
    const char *p = bytes;
    while (n > 0 && !serve_is_over(s)) {
        ssize_t done = write(s->fd, p, n < SERVE_BLOCK_BYTES ? n : SERVE_BLOCK_BYTES);
        if (done < 0 && errno == EPIPE)
            return SERVE_GONE;
        if (done < 0 && errno != EINTR)
            return ty_error_errno(err, TY_E_NONE, errno, "cannot write into a FIFO");
        if (done > 0) {
            s->told->n_bytes += (uint64_t)done;
            p += done;
            n -= (size_t)done;
        }
    }
    return n > 0 ? SERVE_GONE : SERVE_DONE;
}

/* One record, in parts where it is too long for one. */
static serve_result serve_record(serve *s, const void *bytes, size_t n, ty_error *err)
{
    static const char padding[4];
    const char *p = bytes;
    bool is_whole = n <= RECORDIO_MAX;
    serve_result rc = SERVE_DONE;
    for (bool is_first = true; rc == SERVE_DONE && (is_first || n > 0); is_first = false) {
        size_t part = n < RECORDIO_MAX ? n : RECORDIO_MAX;
        uint32_t kind = is_whole ? 0 : is_first ? 1 : part == n ? 3 : 2;
        uint32_t head[2] = {htole32(RECORDIO_MAGIC), htole32(kind << 29 | (uint32_t)part)};
        rc = serve_write(s, head, sizeof head, err);
        rc = rc == SERVE_DONE ? serve_write(s, p, part, err) : rc;
        rc = rc == SERVE_DONE ? serve_write(s, padding, -part & 3, err) : rc;
        p += part;
        n -= part;
    }
    return rc;
}

static serve_result serve_inflated(serve *s, ty_inflate *z, const void *bytes, size_t n, ty_error *err)
{
    size_t made;
    serve_result rc = SERVE_DONE;
    ty_inflate_feed(z, bytes, n);
    do {
        if (ty_inflate_take(z, s->plain, SERVE_BLOCK_BYTES, &made, err) < 0)
            return SERVE_FAILED;
        rc = serve_write(s, s->plain, made, err);
    } while (rc == SERVE_DONE && made == SERVE_BLOCK_BYTES);
    return rc;
}

/* As it is read, block by block. */
static serve_result serve_blocks(serve *s, int fd, ty_error *err)
{
    ty_inflate z = {0};
    serve_result rc = SERVE_DONE;
    for (bool is_first = true; rc == SERVE_DONE; is_first = false) {
        ssize_t n = read(fd, s->block, SERVE_BLOCK_BYTES);
        if (n < 0 && errno != EINTR)
            rc = ty_error_errno(err, TY_E_NONE, errno, "cannot read the file");
        if (n == 0)
            break;
        ty_packing packing =
            is_first && n > 0 && !s->config->is_verbatim ? ty_packing_of(s->block, (size_t)n) : TY_PACKING_NONE;
        if (packing != TY_PACKING_NONE && ty_inflate_init(&z, packing, 0, err) < 0)
            rc = SERVE_FAILED;
        if (rc == SERVE_DONE && n > 0)
            rc = z.state != NULL ? serve_inflated(s, &z, s->block, (size_t)n, err)
                                 : serve_write(s, s->block, (size_t)n, err);
    }
    if (rc == SERVE_DONE && z.state != NULL && ty_inflate_end(&z, err) < 0)
        rc = SERVE_FAILED;
    ty_inflate_fini(&z);
    return rc;
}

static serve_result serve_streamed(serve *s, const char *path, ty_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot open \"%s\"", path);
    serve_result rc = serve_blocks(s, fd, err);
    close(fd);
    if (rc == SERVE_FAILED)
        ty_error_at(err, "%s", path);
    return rc;
}

/* A record says how long it is in front, so that all of the object must be there. */
static serve_result serve_wrapped(serve *s, const char *path, bool is_verbatim, ty_error *err)
{
    ty_bytes bytes = {0};
    ty_file_view view;
    if (is_verbatim ? ty_file_map(path, &view, err) < 0 : ty_bytes_open(path, NULL, &bytes, err) < 0)
        return SERVE_FAILED;
    serve_result rc =
        is_verbatim ? serve_record(s, view.bytes, view.n_bytes, err) : serve_record(s, bytes.data, bytes.n, err);
    if (is_verbatim)
        ty_file_unmap(&view);
    else
        ty_bytes_close(&bytes);
    return rc;
}

static serve_result serve_object_of(serve *s, const serve_object *o, ty_error *err)
{
    if (o->path != NULL)
        return s->config->wrap ? serve_wrapped(s, o->path, s->config->is_verbatim, err)
                               : serve_streamed(s, o->path, err);
    serve_result rc = SERVE_DONE;
    for (int i = 0; i < s->config->n_attributes && rc == SERVE_DONE; i++) {
        const serve_attribute *x = &o->attribute[i];
        rc = x->path != NULL ? serve_wrapped(s, x->path, true, err) : serve_record(s, x->text, x->n, err);
    }
    return rc;
}

/* ---- epochs ---- */

static int serve_make(serve *s, int64_t epoch, ty_error *err)
{
    char *path = s->path[epoch % 2];
    const ty_serve_config *c = s->config;
    if (c->epochs > 0 && epoch >= c->epochs)
        return 0;
    int n = snprintf(path, sizeof s->path[0], "%s/%s_%lld", c->into, c->channel, (long long)epoch);
    if (n >= (int)sizeof s->path[0])
        return ty_error_set(err, TY_E_USAGE, "the FIFO's path is too long");
    if (mkfifo(path, 0666) == 0)
        return 0;
    int why = errno;
    ty_error_errno(err, TY_E_CREATE, why, "\"%s\"", path);
    path[0] = 0;
    return why == EEXIST ? ty_error_help(err, "remove what an earlier feeder has left, or choose another folder") : -1;
}

static void serve_remove(serve *s, int64_t epoch)
{
    char *path = s->path[epoch % 2];
    if (path[0] != 0)
        unlink(path);
    path[0] = 0;
}

/* Waits for a reader, in open(2). */
static serve_result serve_open(serve *s, int64_t epoch, ty_error *err)
{
    int64_t since = ty_clock_ns();
    do
        s->fd = serve_is_over(s) ? -1 : open(s->path[epoch % 2], O_WRONLY | O_CLOEXEC);
    while (s->fd < 0 && !serve_is_over(s) && errno == EINTR);
    s->told->waited_s += (double)(ty_clock_ns() - since) * 1e-9;
    if (serve_is_over(s))
        return SERVE_GONE;
    if (s->fd < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot open \"%s\"", s->path[epoch % 2]);
    (void)fcntl(s->fd, F_SETPIPE_SZ, (int)SERVE_BLOCK_BYTES); /* not allowed: slower */
    return SERVE_DONE;
}

static serve_result serve_epoch(serve *s, int64_t epoch, ty_error *err)
{
    serve_result rc = serve_open(s, epoch, err);
    if (rc != SERVE_DONE)
        return rc;
    int64_t since = ty_clock_ns();
    s->told->n_epochs++;
    if (s->config->shuffle)
        ty_rng_permutation(s->config->seed, TY_STREAM_SERVE, (uint32_t)epoch, s->n, s->order);
    for (int64_t i = 0; i < s->n && rc == SERVE_DONE; i++)
        rc = serve_object_of(s, &s->object[s->order[i]], err);
    s->told->n_left += rc == SERVE_GONE;
    if (rc != SERVE_FAILED && serve_make(s, epoch + 1, err) < 0)
        rc = SERVE_FAILED;
    close(s->fd);
    s->fd = -1;
    s->told->written_s += (double)(ty_clock_ns() - since) * 1e-9;
    return rc;
}

static int serve_epochs(serve *s, ty_error *err)
{
    int64_t epochs = s->config->epochs;
    int rc = serve_make(s, 0, err);
    for (int64_t e = 0; rc == 0 && (epochs == 0 || e < epochs) && !serve_is_over(s); e++) {
        rc = serve_epoch(s, e, err) == SERVE_FAILED ? -1 : 0;
        serve_remove(s, e);
        if (rc < 0)
            ty_error_wrap(err, "epoch %lld of channel \"%s\"", (long long)e, s->config->channel);
    }
    serve_remove(s, 0);
    serve_remove(s, 1);
    return rc;
}

static int serve_start(serve *s, ty_arena *a, ty_error *err)
{
    if (serve_objects_list(s->config, a, &s->object, &s->n, err) < 0 || ty_file_mkdirs(s->config->into, 0755, err) < 0)
        return -1;
    s->order = malloc((size_t)(s->n + 1) * sizeof *s->order);
    s->block = malloc(SERVE_BLOCK_BYTES);
    s->plain = malloc(SERVE_BLOCK_BYTES);
    if (s->order == NULL || s->block == NULL || s->plain == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory to serve %lld objects", (long long)s->n);
    for (int64_t i = 0; i < s->n; i++)
        s->order[i] = (uint32_t)i;
    s->told->n_objects = s->n;
    return 0;
}

int ty_serve_channel(const ty_serve_config *config, ty_serve_told *told, ty_error *err)
{
    serve s = {.config = config, .told = told, .fd = -1};
    ty_arena a;
    ty_arena_init(&a);
    *told = (ty_serve_told){0};
    int rc = serve_start(&s, &a, err);
    if (rc == 0)
        rc = serve_epochs(&s, err);
    free(s.order);
    free(s.block);
    free(s.plain);
    ty_arena_fini(&a);
    return rc;
}
