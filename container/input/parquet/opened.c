/* opened.c - see opened.h. */
#include "container/input/parquet/opened.h"

#include "container/input/arrow/arrow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OPENED_GUESS = 64 << 10, /* bytes at the end of a file that usually hold its footer */
    OPENED_FIRST = 1 << 20   /* and at the beginning of a column, its first values */
};

/* The last n_footer bytes, of which the last `got` are there already. */
static int opened_read_footer(parquet_opened *o, size_t n_footer, const uint8_t *tail, size_t got, ty_arena *a,
                              ty_error *err)
{
    size_t n = (size_t)o->n_bytes;
    if (n_footer <= got)
        return parquet_open_footer(tail + got - n_footer, n_footer, n, a, &o->file, err);
    uint8_t *footer = malloc(n_footer);
    if (!footer)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a footer of %zu bytes", n_footer);
    int rc = ty_bytes_pread(o->fd, footer, n_footer, (int64_t)(n - n_footer), err);
    if (rc == 0)
        rc = parquet_open_footer(footer, n_footer, n, a, &o->file, err);
    free(footer);
    return rc;
}

static int opened_find_footer(parquet_opened *o, ty_arena *a, ty_error *err)
{
    static const uint8_t none[PARQUET_TAIL_BYTES];
    size_t n = (size_t)o->n_bytes, got = n < OPENED_GUESS ? n : OPENED_GUESS;
    uint8_t *tail = malloc(OPENED_GUESS);
    int rc = tail ? ty_bytes_pread(o->fd, tail, got, (int64_t)(n - got), err)
                  : ty_error_set(err, TY_E_LIMIT, "no memory for a footer");
    if (rc == 0) {
        const uint8_t *last = got < PARQUET_TAIL_BYTES ? none : tail + got - PARQUET_TAIL_BYTES;
        size_t n_footer = parquet_footer_bytes(last, n, err);
        rc = n_footer > 0 ? opened_read_footer(o, n_footer, tail, got, a, err) : -1;
    }
    free(tail);
    return rc;
}

static arrow_bytes opened_bytes(const parquet_opened *o, int fd)
{
    return (arrow_bytes){.fd = fd, .data = o->whole.data, .n = o->whole.data ? (int64_t)o->whole.n : o->n_bytes};
}

static int opened_inflate(parquet_opened *o, ty_arena *a, ty_error *err)
{
    if (ty_bytes_open(o->path, NULL, &o->whole, err) < 0)
        return -1;
    if (arrow_has_magic(o->whole.data, o->whole.n))
        return arrow_open(opened_bytes(o, -1), a, &o->file, &o->arrow, err);
    return parquet_open(o->whole.data, o->whole.n, a, &o->file, err);
}

static int opened_begin(parquet_opened *o, ty_arena *a, ty_error *err)
{
    uint8_t magic[16] = {0};
    size_t n = o->n_bytes < (int64_t)sizeof magic ? (size_t)o->n_bytes : sizeof magic;
    if (ty_bytes_pread(o->fd, magic, n, 0, err) < 0)
        return -1;
    if (ty_packing_of(magic, n) != TY_PACKING_NONE)
        return opened_inflate(o, a, err);
    if (arrow_has_magic(magic, n))
        return arrow_open(opened_bytes(o, o->fd), a, &o->file, &o->arrow, err);
    if (!parquet_has_magic(magic, n))
        return ty_error_set(err, TY_E_DATA, "the file is neither Parquet, it does not begin with PAR1, nor Arrow");
    return parquet_check_magic(magic, n, err) < 0 ? -1 : opened_find_footer(o, a, err);
}

/* Descriptor of the file; -1: it cannot be opened, or has another length than n_bytes (-1: any). */
static int opened_fd(const char *path, int64_t n_bytes, int64_t *found, ty_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        ty_error_errno(err, TY_E_NONE, errno, "cannot open a data file");
    } else if (n_bytes >= 0 && st.st_size != n_bytes) {
        ty_error_set(err, TY_E_DATA, "the file had %lld bytes when the channel was listed, and has %lld now",
                     (long long)n_bytes, (long long)st.st_size);
        ty_error_help(err, "files of a channel must not change while a run reads them");
    } else {
        *found = st.st_size;
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

int parquet_opened_open(const char *path, int64_t n_bytes, ty_arena *a, parquet_opened *out, ty_error *err)
{
    *out = (parquet_opened){.path = path};
    out->fd = opened_fd(path, n_bytes, &out->n_bytes, err);
    if (out->fd >= 0 && opened_begin(out, a, err) == 0)
        return 0;
    parquet_opened_close(out);
    return ty_error_at(err, "%s", path);
}

void parquet_opened_rest(parquet_opened *o)
{
    if (o->fd >= 0)
        close(o->fd);
    o->fd = -1;
}

void parquet_opened_close(parquet_opened *o)
{
    parquet_opened_rest(o);
    ty_bytes_close(&o->whole);
    *o = (parquet_opened){.fd = -1};
}

static int opened_room(parquet_room *room, size_t n, ty_error *err)
{
    if (n <= room->chunk_bytes)
        return 0;
    free(room->chunk);
    room->chunk = malloc(n);
    room->chunk_bytes = room->chunk ? n : 0;
    return room->chunk ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for %zu bytes of a column", n);
}

/* By the first n bytes of the column alone. */
static int opened_read_some(const parquet_opened *o, int fd, int group, int column, size_t n, int64_t most,
                            parquet_room *room, parquet_values *out, ty_error *err)
{
    if (opened_room(room, n, err) < 0 ||
        ty_bytes_pread(fd, room->chunk, n, o->file.group[group].chunk[column].at, err) < 0)
        return -1;
    return parquet_read_chunk(&o->file, group, column, room->chunk, n, most, room, out, err);
}

static int opened_read_arrow(const parquet_opened *o, int fd, int group, int column, parquet_values *out, ty_error *err)
{
    const parquet_column *c = &o->file.column[column];
    int rc = c->odd ? ty_error_set(err, TY_E_DATA, "%s, which is not read", c->odd)
                    : arrow_read(o->arrow, opened_bytes(o, fd), group, column, out, err);
    return rc < 0 ? ty_error_wrap(err, "column \"%s\"", c->name) : 0;
}

/* Of Parquet: by as few bytes as `most` rows may need. */
static int opened_read_pages(const parquet_opened *o, int fd, int group, int column, int64_t most, parquet_room *room,
                             parquet_values *out, ty_error *err)
{
    const parquet_chunk *chunk = &o->file.group[group].chunk[column];
    bool is_here = !chunk->is_elsewhere && !chunk->is_encrypted && chunk->n_bytes > 0;
    size_t n = is_here ? (size_t)chunk->n_bytes : 0;
    ty_error ignored = {0};
    if (most > 0 && n > OPENED_FIRST &&
        opened_read_some(o, fd, group, column, OPENED_FIRST, most, room, out, &ignored) == 0)
        return 0;
    return opened_read_some(o, fd, group, column, n, most, room, out, err);
}

int parquet_opened_read(const parquet_opened *o, int group, int column, int64_t most, parquet_room *room,
                        parquet_values *out, ty_error *err)
{
    int64_t n_bytes;
    if (o->whole.data)
        return o->arrow ? opened_read_arrow(o, -1, group, column, out, err)
                        : parquet_read(&o->file, group, column, most, room, out, err);
    int fd = o->fd >= 0 ? o->fd : opened_fd(o->path, o->n_bytes, &n_bytes, err);
    if (fd < 0)
        return -1;
    int rc = o->arrow ? opened_read_arrow(o, fd, group, column, out, err)
                      : opened_read_pages(o, fd, group, column, most, room, out, err);
    if (fd != o->fd)
        close(fd);
    return rc;
}
