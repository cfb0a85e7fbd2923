/* opened.c - see opened.h. */
#include "container/input/parquet/opened.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPENED_GUESS = 64 << 10 }; /* bytes at the end of a file that usually hold its footer */

/* All of [at, at + n). */
static int opened_pread(int fd, uint8_t *out, size_t n, int64_t at, ty_error *err)
{
    for (size_t got = 0; got < n;) {
        ssize_t some = pread(fd, out + got, n - got, (off_t)(at + (int64_t)got));
        if (some < 0 && errno == EINTR)
            continue;
        if (some < 0)
            return ty_error_errno(err, TY_E_NONE, errno, "cannot read a data file");
        if (some == 0) {
            ty_error_set(err, TY_E_DATA, "the file ends at byte %lld, expected %lld more",
                         (long long)(at + (int64_t)got), (long long)(n - got));
            return ty_error_help(err, "files of a channel must not change while a run reads them");
        }
        got += (size_t)some;
    }
    return 0;
}

/* The last n_footer bytes, of which the last `got` are there already. */
static int opened_read_footer(parquet_opened *o, size_t n, size_t n_footer, const uint8_t *tail, size_t got,
                              ty_error *err)
{
    if (n_footer <= got)
        return parquet_open_footer(tail + got - n_footer, n_footer, n, &o->arena, &o->file, err);
    uint8_t *footer = malloc(n_footer);
    if (!footer)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a footer of %zu bytes", n_footer);
    int rc = opened_pread(o->fd, footer, n_footer, (int64_t)(n - n_footer), err);
    if (rc == 0)
        rc = parquet_open_footer(footer, n_footer, n, &o->arena, &o->file, err);
    free(footer);
    return rc;
}

static int opened_begin(parquet_opened *o, size_t n, uint8_t *tail, ty_error *err)
{
    uint8_t magic[4];
    size_t got = n < OPENED_GUESS ? n : OPENED_GUESS, n_magic = n < sizeof magic ? n : sizeof magic;
    if (opened_pread(o->fd, magic, n_magic, 0, err) < 0 || parquet_check_magic(magic, n_magic, err) < 0 ||
        opened_pread(o->fd, tail, got, (int64_t)(n - got), err) < 0)
        return -1;
    static const uint8_t none[PARQUET_TAIL_BYTES];
    size_t n_footer = parquet_footer_bytes(got < PARQUET_TAIL_BYTES ? none : tail + got - PARQUET_TAIL_BYTES, n, err);
    return n_footer == 0 ? -1 : opened_read_footer(o, n, n_footer, tail, got, err);
}

int parquet_opened_open(const char *path, int64_t n_bytes, parquet_opened *out, ty_error *err)
{
    struct stat st;
    *out = (parquet_opened){.fd = open(path, O_RDONLY | O_CLOEXEC)};
    if (out->fd < 0 || fstat(out->fd, &st) < 0) {
        ty_error_errno(err, TY_E_NONE, errno, "cannot open a data file");
        parquet_opened_close(out);
        return ty_error_at(err, "%s", path);
    }
    ty_arena_init(&out->arena);
    uint8_t *tail = malloc(OPENED_GUESS);
    int rc;
    if (n_bytes >= 0 && st.st_size != n_bytes) {
        rc = ty_error_set(err, TY_E_DATA, "the file had %lld bytes when the channel was listed, and has %lld now",
                          (long long)n_bytes, (long long)st.st_size);
        ty_error_help(err, "files of a channel must not change while a run reads them");
    } else if (!tail) {
        rc = ty_error_set(err, TY_E_LIMIT, "no memory for a footer");
    } else {
        rc = opened_begin(out, (size_t)st.st_size, tail, err);
    }
    free(tail);
    if (rc == 0)
        return 0;
    parquet_opened_close(out);
    return ty_error_at(err, "%s", path);
}

void parquet_opened_close(parquet_opened *o)
{
    if (o->fd < 0)
        return;
    close(o->fd);
    ty_arena_fini(&o->arena);
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

int parquet_opened_read(const parquet_opened *o, int group, int column, parquet_room *room, parquet_values *out,
                        ty_error *err)
{
    const parquet_chunk *chunk = &o->file.group[group].chunk[column];
    bool is_here = !chunk->is_elsewhere && !chunk->is_encrypted && chunk->n_bytes > 0;
    size_t n = is_here ? (size_t)chunk->n_bytes : 0;
    if (opened_room(room, n, err) < 0 || opened_pread(o->fd, room->chunk, n, chunk->at, err) < 0)
        return -1;
    return parquet_read_chunk(&o->file, group, column, room->chunk, 0, room, out, err);
}
