/* file_write.c - durable, atomic writing. The seven steps stand in file.h; each has one function here, and its name is
 * in the message when it fails. */
#define _GNU_SOURCE
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int ty_file_write_all(int fd, const void *bytes, size_t n_bytes, const char *what, ty_error *err)
{
    const char *at = bytes;
    while (n_bytes > 0) {
        ssize_t n = write(fd, at, n_bytes > 1 << 30 ? 1 << 30 : n_bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
            continue;
        }
        if (n < 0)
            return ty_error_errno(err, TY_E_NONE, errno, "cannot write %s", what);
        if (n == 0)
            return ty_error_set(err, TY_E_IO, "cannot write %s: the system took no bytes", what);
        at += n;
        n_bytes -= (size_t)n;
    }
    return 0;
}

static void writer_release(ty_file_writer *w)
{
    if (w->fd >= 0)
        close(w->fd);
    if (w->folder_fd >= 0)
        close(w->folder_fd);
    free(w->path);
    free(w->temporary);
    *w = (ty_file_writer){.fd = -1, .folder_fd = -1};
}

/* Splits w->path and opens its folder, so that the later steps cannot be led elsewhere by a renamed folder. */
static int open_folder(ty_file_writer *w, ty_error *err)
{
    char *slash = strrchr(w->path, '/');
    w->name = slash ? slash + 1 : w->path;
    if (w->name[0] == 0)
        return ty_error_set(err, TY_E_CREATE, "cannot write \"%s\": no file name in it", w->path);
    char *folder = !slash ? strdup(".") : slash == w->path ? strdup("/") : strndup(w->path, (size_t)(slash - w->path));
    if (!folder)
        return ty_error_set(err, TY_E_LIMIT, "no memory");
    w->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int saved = errno;
    if (w->folder_fd < 0)
        ty_error_errno(err, TY_E_NONE, saved, "cannot write %s: cannot open folder %s", w->path, folder);
    free(folder);
    return w->folder_fd < 0 ? -1 : 0;
}

static int create_temporary(ty_file_writer *w, mode_t mode, ty_error *err)
{
    static atomic_uint counter;
    for (int attempt = 0; attempt < 100; attempt++) {
        free(w->temporary);
        w->temporary = NULL;
        if (asprintf(&w->temporary, ".%.200s.tmp-%ld-%u", w->name, (long)getpid(), counter++) < 0) {
            w->temporary = NULL;
            return ty_error_set(err, TY_E_LIMIT, "no memory");
        }
        w->fd = openat(w->folder_fd, w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
        if (w->fd >= 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    ty_error_errno(err, errno == EEXIST ? TY_E_CREATE : TY_E_NONE, errno,
                   "cannot write %s: cannot create a temporary file beside it", w->path);
    free(w->temporary);
    w->temporary = NULL;
    return -1;
}

int ty_file_writer_open(ty_file_writer *w, const char *path, mode_t mode, ty_error *err)
{
    *w = (ty_file_writer){.fd = -1, .folder_fd = -1, .path = strdup(path)};
    if (!w->path)
        return ty_error_set(err, TY_E_LIMIT, "no memory");
    if (open_folder(w, err) < 0 || create_temporary(w, mode, err) < 0) {
        writer_release(w);
        return -1;
    }
    return 0;
}

int ty_file_writer_add(ty_file_writer *w, const void *bytes, size_t n_bytes, ty_error *err)
{
    if (w->fd < 0)
        return ty_error_set(err, TY_E_INTERNAL, "write to a file that is closed");
    if (ty_file_write_all(w->fd, bytes, n_bytes, w->path, err) < 0)
        return -1;
    w->n_bytes += n_bytes;
    return 0;
}

static int sync_and_close(ty_file_writer *w, ty_error *err)
{
    if (fsync(w->fd) < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot write %s: fsync failed", w->path);
    int rc = close(w->fd);
    w->fd = -1;
    if (rc < 0 && errno != EINTR)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot write %s: close failed", w->path);
    return 0;
}

int ty_file_writer_commit(ty_file_writer *w, ty_error *err)
{
    if (w->fd < 0)
        return ty_error_set(err, TY_E_INTERNAL, "commit of a file that is closed");
    if (sync_and_close(w, err) < 0) {
        ty_file_writer_abandon(w);
        return -1;
    }
    if (renameat(w->folder_fd, w->temporary, w->folder_fd, w->name) < 0) {
        ty_error_errno(err, TY_E_NONE, errno, "cannot write %s: rename failed", w->path);
        ty_file_writer_abandon(w);
        return -1;
    }
    int rc = 0;
    /* Some network and FUSE file systems know no fsync of folders; there the rename is as durable as it gets. */
    if (fsync(w->folder_fd) < 0 && errno != EINVAL && errno != ENOTSUP)
        rc = ty_error_errno(err, TY_E_NONE, errno, "cannot write %s: fsync of its folder failed", w->path);
    writer_release(w);
    return rc;
}

void ty_file_writer_abandon(ty_file_writer *w)
{
    if (w->temporary && w->folder_fd >= 0)
        unlinkat(w->folder_fd, w->temporary, 0);
    if (w->path)
        writer_release(w);
}

int ty_file_try(const char *path, ty_error *err)
{
    ty_file_writer w;
    if (ty_file_is_folder(path))
        return ty_error_errno(err, TY_E_NONE, EISDIR, "%s", path);
    if (ty_file_writer_open(&w, path, 0644, err) < 0)
        return -1;
    ty_file_writer_abandon(&w);
    return 0;
}

bool ty_file_is_temporary(const char *name)
{
    const char *mark = name[0] == '.' ? strstr(name, ".tmp-") : NULL;
    if (!mark || mark == name)
        return false;
    mark += strlen(".tmp-");
    size_t n_pid = strspn(mark, "0123456789");
    if (n_pid == 0 || mark[n_pid] != '-')
        return false;
    mark += n_pid + 1;
    size_t n_counter = strspn(mark, "0123456789");
    return n_counter > 0 && mark[n_counter] == 0;
}

int ty_file_write(const char *path, const void *bytes, size_t n_bytes, mode_t mode, ty_error *err)
{
    ty_file_writer w;
    if (ty_file_writer_open(&w, path, mode, err) < 0)
        return -1;
    if (ty_file_writer_add(&w, bytes, n_bytes, err) < 0) {
        ty_file_writer_abandon(&w);
        return -1;
    }
    return ty_file_writer_commit(&w, err);
}

int ty_file_sync_folder(const char *path, ty_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot open folder %s", path);
    int rc = 0;
    if (fsync(fd) < 0 && errno != EINVAL && errno != ENOTSUP)
        rc = ty_error_errno(err, TY_E_NONE, errno, "fsync of folder %s failed", path);
    close(fd);
    return rc;
}
