/* file.c - reading files, and the facts about them. Durable writing is in file_write.c, folders in file_tree.c. */
#define _GNU_SOURCE
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens a regular file. O_NONBLOCK, so that a FIFO put in the file's place cannot hang us before fstat sees it. */
static int open_regular(const char *path, struct stat *st, ty_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot open %s", path);
    if (fstat(fd, st) < 0) {
        int saved = errno;
        close(fd);
        return ty_error_errno(err, TY_E_NONE, saved, "cannot examine %s", path);
    }
    if (!S_ISREG(st->st_mode)) {
        close(fd);
        return ty_error_set(err, TY_E_IO, "%s: expected a regular file, found a %s", path,
                            S_ISDIR(st->st_mode) ? "folder" : "device or pipe");
    }
    return fd;
}

/* The size from fstat is only a first guess: files of /proc say 0, and a growing file outgrows it. */
static int read_rest(int fd, const char *path, size_t guess_bytes, ty_buf *out, ty_error *err)
{
    size_t piece_bytes = guess_bytes + 1;
    for (;;) {
        size_t room_bytes = out->max_bytes - out->len;
        if (piece_bytes > room_bytes)
            piece_bytes = room_bytes;
        if (piece_bytes == 0) {
            char extra;
            ssize_t n = read(fd, &extra, 1);
            if (n < 0 && errno == EINTR)
                continue;
            if (n == 0)
                return 0;
            return ty_error_set(err, TY_E_LIMIT, "%s: larger than the limit of %zu bytes", path, out->max_bytes);
        }
        char *to = ty_buf_reserve(out, piece_bytes);
        if (!to)
            return ty_error_set(err, TY_E_LIMIT, "%s: no memory for %zu bytes", path, piece_bytes);
        ssize_t n = read(fd, to, piece_bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ty_error_errno(err, TY_E_NONE, errno, "cannot read %s", path);
        if (n == 0)
            return 0;
        out->len += (size_t)n;
        piece_bytes = 64 << 10;
    }
}

int ty_file_read(const char *path, ty_buf *out, ty_error *err)
{
    struct stat st;
    int fd = open_regular(path, &st, err);
    if (fd < 0)
        return -1;
    int rc;
    if ((uint64_t)st.st_size > out->max_bytes - out->len)
        rc = ty_error_set(err, TY_E_LIMIT, "%s: %lld bytes, larger than the limit of %zu", path, (long long)st.st_size,
                          out->max_bytes);
    else
        rc = read_rest(fd, path, (size_t)st.st_size, out, err);
    close(fd);
    return rc;
}

bool ty_file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

bool ty_file_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int64_t ty_file_size(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (int64_t)st.st_size : -1;
}

int ty_file_map(const char *path, ty_file_view *out, ty_error *err)
{
    static const uint8_t nothing[1];
    *out = (ty_file_view){nothing, 0};
    struct stat st;
    int fd = open_regular(path, &st, err);
    if (fd < 0)
        return -1;
    if (st.st_size == 0) {
        close(fd);
        return 0;
    }
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    int saved = errno;
    close(fd);
    if (bytes == MAP_FAILED)
        return ty_error_errno(err, TY_E_NONE, saved, "cannot map %s (%lld bytes)", path, (long long)st.st_size);
    *out = (ty_file_view){bytes, (size_t)st.st_size};
    return 0;
}

void ty_file_unmap(ty_file_view *view)
{
    if (view->n_bytes)
        munmap((void *)view->bytes, view->n_bytes);
    *view = (ty_file_view){0};
}
