/* bytes.c - map, read or inflate one file. */
#include "container/input/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* Reads below this size cost less than a mapping, and never meet SIGBUS. */
#define BYTES_MAP_FROM   ((size_t)1 << 20)
#define BYTES_READ_CHUNK ((size_t)4 << 20)

static const uint8_t bytes_empty[1];

static bool bytes_are_gzip(const uint8_t *p, size_t n)
{
    return n >= 3 && p[0] == 0x1f && p[1] == 0x8b && p[2] == 8;
}

/* Makes room behind `used`, at most up to max_bytes. */
static int gunzip_grow(uint8_t **data, size_t used, size_t *cap, size_t max_bytes, ty_error *err)
{
    if (used < *cap)
        return 0;
    if (*cap >= max_bytes) {
        ty_error_set(err, TY_E_LIMIT, "gzip data grow past the limit of %zu bytes", max_bytes);
        return ty_error_help(err, "split the file, or store it uncompressed so that it can be mapped");
    }
    size_t next = *cap < (1 << 16) ? (1 << 16) : *cap * 2;
    if (next > max_bytes || next < *cap)
        next = max_bytes;
    uint8_t *grown = realloc(*data, next);
    if (grown == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %zu bytes of inflated data", next);
    *data = grown;
    *cap = next;
    return 0;
}

static int gunzip_failed(const z_stream *z, int rc, size_t at, ty_error *err)
{
    if (rc == Z_MEM_ERROR)
        return ty_error_set(err, TY_E_LIMIT, "no memory to inflate gzip data");
    return ty_error_set(err, TY_E_DATA, "gzip data are damaged near byte %zu: %s", at,
                        z->msg != NULL ? z->msg : "unexpected end");
}

/* Inflates all members; *data, *used grow. zlib's avail counters are 32 bits wide, hence the slices. */
static int gunzip_members(z_stream *z, const uint8_t *in, size_t n, size_t max_bytes, uint8_t **data, size_t *used,
                          size_t *cap, ty_error *err)
{
    size_t at = 0;
    for (;;) {
        if (gunzip_grow(data, *used, cap, max_bytes, err) < 0)
            return -1;
        size_t in_slice = n - at < (1u << 30) ? n - at : (1u << 30);
        size_t out_slice = *cap - *used < (1u << 30) ? *cap - *used : (1u << 30);
        z->next_in = (Bytef *)(uintptr_t)(in + at);
        z->avail_in = (uInt)in_slice;
        z->next_out = *data + *used;
        z->avail_out = (uInt)out_slice;
        int rc = inflate(z, Z_NO_FLUSH);
        at += in_slice - z->avail_in;
        *used += out_slice - z->avail_out;
        if (rc == Z_STREAM_END) {
            if (at == n)
                return 0;
            if (!bytes_are_gzip(in + at, n - at))
                return ty_error_set(err, TY_E_DATA, "%zu bytes that are not gzip follow the last member, at byte %zu",
                                    n - at, at);
            if (inflateReset(z) != Z_OK)
                return gunzip_failed(z, Z_MEM_ERROR, at, err);
        } else if (rc != Z_OK && !(rc == Z_BUF_ERROR && z->avail_out == 0)) {
            return gunzip_failed(z, rc, at, err);
        } else if (at == n && z->avail_out > 0) {
            return gunzip_failed(z, Z_BUF_ERROR, at, err);
        }
    }
}

int ty_gunzip(const uint8_t *in, size_t n, size_t max_bytes, uint8_t **out, size_t *n_out, ty_error *err)
{
    z_stream z = {0};
    uint8_t *data = NULL;
    size_t used = 0, cap = 0;
    if (!bytes_are_gzip(in, n))
        return ty_error_set(err, TY_E_DATA, "not gzip data: expected the bytes 1f 8b 08");
    if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
        return ty_error_set(err, TY_E_LIMIT, "no memory to inflate gzip data");
    int rc = gunzip_members(&z, in, n, max_bytes, &data, &used, &cap, err);
    inflateEnd(&z);
    if (rc < 0) {
        free(data);
        return -1;
    }
    *out = data;
    *n_out = used;
    return 0;
}

/* Reads until n bytes are there or the file ends; a file that shrank gives fewer. */
static int bytes_read_all(int fd, uint8_t *data, size_t n, size_t *n_read)
{
    size_t at = 0;
    while (at < n) {
        size_t want = n - at < BYTES_READ_CHUNK ? n - at : BYTES_READ_CHUNK;
        ssize_t got = read(fd, data + at, want);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        at += (size_t)got;
    }
    *n_read = at;
    return 0;
}

static int bytes_load(int fd, size_t n, bool map, ty_bytes *out, ty_error *err)
{
    if (n == 0) {
        out->data = bytes_empty;
        return 0;
    }
    if (map) {
        void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p != MAP_FAILED) {
            *out = (ty_bytes){.data = p, .n = n, .file_bytes = n, .mapped = true};
            return 0;
        }
    }
    uint8_t *data = malloc(n);
    if (data == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a file of %zu bytes", n);
    size_t n_read = 0;
    if (bytes_read_all(fd, data, n, &n_read) < 0) {
        ty_error_errno(err, TY_E_NONE, errno, "cannot read the file");
        free(data);
        return -1;
    }
    *out = (ty_bytes){.data = data, .n = n_read, .file_bytes = n};
    return 0;
}

static int bytes_inflate(ty_bytes *b, size_t max_bytes, ty_error *err)
{
    uint8_t *plain = NULL;
    size_t n = 0, file_bytes = b->file_bytes;
    if (ty_gunzip(b->data, b->n, max_bytes, &plain, &n, err) < 0)
        return -1;
    ty_bytes_close(b);
    *b = (ty_bytes){.data = plain, .n = n, .file_bytes = file_bytes};
    return 0;
}

static int bytes_open_fd(const char *path, ty_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        ty_error_errno(err, TY_E_NONE, errno, "cannot open a data file");
    return fd;
}

int ty_bytes_open(const char *path, const ty_bytes_options *options, ty_bytes *out, ty_error *err)
{
    ty_bytes_options none = {0};
    options = options != NULL ? options : &none;
    *out = (ty_bytes){0};
    int fd = bytes_open_fd(path, err);
    if (fd < 0)
        return ty_error_at(err, "%s", path);
    struct stat st;
    int rc;
    if (fstat(fd, &st) < 0)
        rc = ty_error_errno(err, TY_E_NONE, errno, "cannot read the size of a data file");
    else if (!S_ISREG(st.st_mode))
        rc = ty_error_set(err, TY_E_DATA, "not a regular file");
    else
        rc = bytes_load(fd, (size_t)st.st_size, !options->no_map && (size_t)st.st_size >= BYTES_MAP_FROM, out, err);
    close(fd);
    if (rc == 0 && bytes_are_gzip(out->data, out->n)) {
        size_t max = options->max_inflated_bytes != 0 ? options->max_inflated_bytes : TY_BYTES_MAX_INFLATED;
        rc = bytes_inflate(out, max, err);
    }
    if (rc < 0) {
        ty_bytes_close(out);
        return ty_error_at(err, "%s", path);
    }
    return 0;
}

void ty_bytes_close(ty_bytes *b)
{
    if (b->mapped)
        munmap((void *)(uintptr_t)b->data, b->n);
    else if (b->data != bytes_empty)
        free((void *)(uintptr_t)b->data);
    *b = (ty_bytes){0};
}
