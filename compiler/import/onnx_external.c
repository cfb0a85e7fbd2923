/* onnx_external.c - weights that lie in files beside the model.
 *
 * The path comes from a stranger. It must stay in the model's folder: no absolute path, no "..", no link of any kind on
 * the way (openat2 with RESOLVE_BENEATH, or component by component with O_NOFOLLOW), a regular file with one name.
 */
#define _GNU_SOURCE
#include "compiler/import/onnx_tree.h"

#include "base/ahead.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool path_is_plain(const char *path)
{
    if (!path[0] || path[0] == '/' || strchr(path, '\\') || strlen(path) > 1024)
        return false;
    for (const char *p = path; p; p = strchr(p, '/')) {
        p += *p == '/';
        if (p[0] == '.' && p[1] == '.' && (p[2] == '/' || !p[2]))
            return false;
    }
    return true;
}

/* Where the kernel has no openat2: one component after the other, links refused at each. */
static int open_by_steps(int folder, const char *path)
{
    char part[1025];
    int at = dup(folder);
    for (;;) {
        path += strspn(path, "/");
        size_t n = strcspn(path, "/");
        bool is_last = path[n] == 0;
        memcpy(part, path, n);
        part[n] = 0;
        int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (is_last ? O_NONBLOCK : O_DIRECTORY);
        int next = at < 0 ? -1 : openat(at, part, flags);
        int saved = errno;
        if (at >= 0)
            close(at);
        errno = saved;
        if (next < 0 || is_last)
            return next;
        at = next;
        path += n;
    }
}

static int open_beneath(int folder, const char *path)
{
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    long fd = syscall(SYS_openat2, folder, path, &how, sizeof how);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        return open_by_steps(folder, path);
    return (int)fd;
}

static int check_file(int fd, const char *path, size_t *n_bytes, ty_error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "external data \"%s\"", path);
    if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
        return ty_error_set(err, TY_E_MODEL_FILE, "external data \"%s\" is not a regular file with one name", path);
    *n_bytes = (size_t)st.st_size;
    return 0;
}

static int map_external(ty_onnx *m, const char *path, onnx_file *file, ty_error *err)
{
    int fd = open_beneath(m->folder, path);
    if (fd < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "external data \"%s\" cannot be opened", path);
    size_t n_bytes = 0;
    int rc = check_file(fd, path, &n_bytes, err);
    *file = (onnx_file){NULL, n_bytes, false};
    if (rc == 0 && n_bytes > 0) {
        void *data = mmap(NULL, n_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED)
            rc = ty_error_errno(err, TY_E_NONE, errno, "external data \"%s\" cannot be mapped", path);
        else
            *file = (onnx_file){data, n_bytes, true};
        ty_ahead_read(fd, n_bytes);
    }
    close(fd);
    return rc;
}

/* The mapped file of that name, opened at the first request. */
static const onnx_file *external_file(ty_onnx *m, const char *path, ty_error *err)
{
    for (int i = 0; i < m->n_externals; i++)
        if (strcmp(m->external_names[i], path) == 0)
            return &m->externals[i];
    enum { MAX_FILES = 4096 };
    if (m->n_externals == MAX_FILES) {
        ty_error_set(err, TY_E_LIMIT, "the model's weights lie in more than %d files", MAX_FILES);
        return NULL;
    }
    if ((m->n_externals & (m->n_externals - 1)) == 0) {
        int room = m->n_externals ? 2 * m->n_externals : 1;
        onnx_file *files = TY_NEW_ARRAY(&m->arena, onnx_file, room);
        const char **names = TY_NEW_ARRAY(&m->arena, const char *, room);
        if (m->n_externals) {
            memcpy(files, m->externals, sizeof *files * (size_t)m->n_externals);
            memcpy(names, m->external_names, sizeof *names * (size_t)m->n_externals);
        }
        m->externals = files;
        m->external_names = names;
    }
    if (map_external(m, path, &m->externals[m->n_externals], err) < 0)
        return NULL;
    m->external_names[m->n_externals] = path;
    return &m->externals[m->n_externals++];
}

static int parse_decimal(const char *text, uint64_t *out)
{
    uint64_t v = 0;
    if (!text[0])
        return -1;
    for (; *text; text++)
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*text - '0'), &v))
            return -1;
    *out = v;
    return 0;
}

int onnx_external_value(ty_onnx *m, const onnx_tensor *t, size_t n_bytes, const void **data, ty_error *err)
{
    const char *path = "";
    uint64_t offset = 0, length = n_bytes;
    for (size_t i = 0; i < t->external.n; i++) {
        const onnx_pair *pair = ONNX_AT(t->external, onnx_pair, i);
        int rc = 0;
        if (strcmp(pair->key, "location") == 0)
            path = pair->value;
        else if (strcmp(pair->key, "offset") == 0)
            rc = parse_decimal(pair->value, &offset);
        else if (strcmp(pair->key, "length") == 0)
            rc = parse_decimal(pair->value, &length);
        if (rc < 0)
            return ty_error_set(err, TY_E_MODEL_FILE, "external data: \"%s\" is no decimal number", pair->key);
    }
    if (!path_is_plain(path))
        return ty_error_set(err, TY_E_MODEL_FILE, "external data: path \"%.200s\" leaves the model's folder", path);
    if (!m || m->folder < 0)
        return ty_error_set(err, TY_E_MODEL_FILE, "external data \"%.200s\" cannot be used here", path);
    const onnx_file *file = external_file(m, path, err);
    if (!file)
        return -1;
    if (length != n_bytes)
        return ty_error_set(err, TY_E_MODEL_FILE, "external data: length is %llu where the shape needs %zu",
                            (unsigned long long)length, n_bytes);
    if (offset > file->n || length > file->n - offset)
        return ty_error_set(err, TY_E_MODEL_FILE,
                            "external data: bytes %llu to %llu lie beyond the end of \"%s\" (%zu)",
                            (unsigned long long)offset, (unsigned long long)(offset + length), path, file->n);
    *data = n_bytes ? (const char *)file->data + offset : ty_arena_alloc(&m->arena, 8);
    return 0;
}

void onnx_external_close(ty_onnx *m)
{
    for (int i = 0; i < m->n_externals; i++)
        if (m->externals[i].is_mapped)
            munmap((void *)(uintptr_t)m->externals[i].data, m->externals[i].n);
    m->n_externals = 0;
}
