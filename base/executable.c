/* executable.c - see executable.h. */
#define _GNU_SOURCE
#include "base/executable.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

bool ty_executable_is_forbidden(const char *path)
{
    struct statvfs mount;
    return statvfs(path, &mount) == 0 && (mount.f_flag & ST_NOEXEC);
}

/* sendfile may stop short. */
static int copy_all(int to, int from, off_t n_bytes)
{
    for (off_t done = 0; done < n_bytes;) {
        ssize_t n = sendfile(to, from, &done, (size_t)(n_bytes - done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
    }
    return fchmod(to, 0700);
}

int ty_executable_copy(const char *path, int *fd, ty_error *err)
{
    struct stat st;
    int from = open(path, O_RDONLY | O_CLOEXEC);
    int to = from < 0 ? -1 : memfd_create("trainyard", MFD_CLOEXEC);
    int rc = to < 0 || fstat(from, &st) < 0 || copy_all(to, from, st.st_size) < 0 ? -1 : 0;
    int copy_errno = errno;
    if (from >= 0)
        close(from);
    if (rc == 0) {
        *fd = to;
        return 0;
    }
    if (to >= 0)
        close(to);
    return ty_error_errno(err, TY_E_NONE, copy_errno, "copying \"%s\" into memory to execute it", path);
}

static void *open_copy(const char *path, int *fd, ty_error *err)
{
    char name[64];
    if (ty_executable_copy(path, fd, err) < 0)
        return NULL;
    snprintf(name, sizeof name, "/proc/self/fd/%d", *fd);
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle)
        return handle;
    close(*fd);
    const char *reason = dlerror();
    ty_error_set(err, TY_E_COMPILER, "cannot load a copy of \"%s\" in memory: %s", path, reason ? reason : "no reason");
    ty_error_help(err, "its folder is mounted noexec; set TMPDIR to one that is not");
    return NULL;
}

int ty_shared_object_open(const char *path, ty_shared_object *out, ty_error *err)
{
    *out = (ty_shared_object){NULL, -1};
    if (ty_executable_is_forbidden(path)) {
        out->handle = open_copy(path, &out->copy_fd, err);
        return out->handle ? 0 : -1;
    }
    out->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (out->handle)
        return 0;
    const char *reason = dlerror();
    return ty_error_set(err, TY_E_COMPILER, "cannot load \"%s\": %s", path, reason ? reason : "no reason");
}

void ty_shared_object_close(ty_shared_object *o)
{
    if (!o->handle)
        return;
    dlclose(o->handle);
    if (o->copy_fd >= 0)
        close(o->copy_fd);
    *o = (ty_shared_object){NULL, -1};
}
