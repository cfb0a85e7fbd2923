/* bytes.c - map, read or inflate one file. */
#include "container/input/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads below this size cost less than a mapping, and never meet SIGBUS. */
#define BYTES_MAP_FROM   ((size_t)1 << 20)
#define BYTES_READ_CHUNK ((size_t)4 << 20)

static const uint8_t bytes_empty[1];

/* Makes room behind `used`, at most up to max_bytes and one more, which shows that it is too little. */
static int bytes_grow(uint8_t **data, size_t used, size_t *cap, size_t max_bytes, ty_error *err)
{
    if (used < *cap)
        return 0;
    size_t next = *cap < (1 << 16) ? (1 << 16) : *cap * 2;
    if (next > max_bytes || next < *cap)
        next = max_bytes < SIZE_MAX ? max_bytes + 1 : max_bytes;
    uint8_t *grown = realloc(*data, next);
    if (grown == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %zu bytes of inflated data", next);
    *data = grown;
    *cap = next;
    return 0;
}

static int bytes_inflate_to(ty_inflate *z, size_t max_bytes, uint8_t **data, size_t *used, ty_error *err)
{
    size_t cap = 0, n = 0;
    do {
        if (bytes_grow(data, *used, &cap, max_bytes, err) < 0 ||
            ty_inflate_take(z, *data + *used, cap - *used, &n, err) < 0)
            return -1;
        *used += n;
    } while (*used == cap);
    return ty_inflate_end(z, err);
}

int ty_inflate_all(ty_packing packing, const uint8_t *in, size_t n, size_t max_bytes, uint8_t **out, size_t *n_out,
                   ty_error *err)
{
    ty_inflate z;
    uint8_t *data = NULL;
    size_t used = 0;
    if (ty_inflate_init(&z, packing, max_bytes, err) < 0)
        return -1;
    ty_inflate_feed(&z, in, n);
    int rc = bytes_inflate_to(&z, max_bytes, &data, &used, err);
    ty_inflate_fini(&z);
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

static int bytes_load(int fd, const char *path, size_t n, bool map, ty_bytes *out, ty_error *err)
{
    if (n == 0) {
        out->data = bytes_empty;
        return 0;
    }
    if (map) {
        void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p != MAP_FAILED) {
            *out = (ty_bytes){.data = p, .n = n, .file_bytes = n, .mapped = true};
            out->watch = ty_mapped_watch(p, n, path);
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

static int bytes_inflate(ty_bytes *b, ty_packing packing, size_t max_bytes, ty_error *err)
{
    uint8_t *plain = NULL;
    size_t n = 0, file_bytes = b->file_bytes;
    if (ty_inflate_all(packing, b->data, b->n, max_bytes, &plain, &n, err) < 0)
        return -1;
    if (ty_mapped_check(err) < 0) {
        free(plain);
        return -1;
    }
    ty_bytes_close(b);
    *b = (ty_bytes){.data = plain, .n = n, .file_bytes = file_bytes};
    return 0;
}

static ty_file_id bytes_id(const struct stat *st)
{
    return (ty_file_id){.device = (uint64_t)st->st_dev,
                        .inode = (uint64_t)st->st_ino,
                        .n_bytes = (int64_t)st->st_size,
                        .modified_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
                        .changed_ns = (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec};
}

bool ty_file_id_of(const char *path, ty_file_id *out)
{
    struct stat st;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    *out = bytes_id(&st);
    return true;
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
        rc = bytes_load(fd, path, (size_t)st.st_size, !options->no_map && (size_t)st.st_size >= BYTES_MAP_FROM, out,
                        err);
    close(fd);
    ty_packing packing = rc == 0 ? ty_packing_of(out->data, out->n) : TY_PACKING_NONE;
    if (packing != TY_PACKING_NONE) {
        size_t max = options->max_inflated_bytes != 0 ? options->max_inflated_bytes : TY_BYTES_MAX_INFLATED;
        rc = bytes_inflate(out, packing, max, err);
    }
    if (rc < 0) {
        ty_mapped_check(err);
        ty_bytes_close(out);
        return ty_error_at(err, "%s", path);
    }
    out->id = bytes_id(&st);
    return 0;
}

/* Inflates what the first blocks of a file give. */
static size_t bytes_head_inflated(int fd, ty_packing packing, const uint8_t *head, size_t n_head, uint8_t *out,
                                  size_t n)
{
    ty_inflate z;
    uint8_t block[4096];
    size_t used = 0, made = 0;
    if (ty_inflate_init(&z, packing, 0, NULL) < 0)
        return 0;
    ty_inflate_feed(&z, head, n_head);
    while (ty_inflate_take(&z, out + used, n - used, &made, NULL) == 0) {
        size_t n_block = 0;
        used += made;
        if (used == n || bytes_read_all(fd, block, sizeof block, &n_block) < 0 || n_block == 0)
            break;
        ty_inflate_feed(&z, block, n_block);
    }
    ty_inflate_fini(&z);
    return used;
}

size_t ty_bytes_head(const char *path, uint8_t *out, size_t n)
{
    uint8_t head[4096];
    size_t n_head = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0)
        return 0;
    bool is_read = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && bytes_read_all(fd, head, sizeof head, &n_head) == 0;
    ty_packing packing = is_read ? ty_packing_of(head, n_head) : TY_PACKING_NONE;
    size_t used = n_head < n ? n_head : n;
    if (packing == TY_PACKING_NONE)
        memcpy(out, head, used);
    else
        used = bytes_head_inflated(fd, packing, head, n_head, out, n);
    close(fd);
    return used;
}

int ty_bytes_pread(int fd, uint8_t *out, size_t n, int64_t at, ty_error *err)
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

void ty_bytes_close(ty_bytes *b)
{
    ty_mapped_forget(b->watch);
    if (b->mapped)
        munmap((void *)(uintptr_t)b->data, b->n);
    else if (b->data != bytes_empty)
        free((void *)(uintptr_t)b->data);
    *b = (ty_bytes){0};
}
