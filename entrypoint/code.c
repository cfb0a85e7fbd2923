/* code.c - filling the code folder. */
#define _GNU_SOURCE
#include "entrypoint/code.h"

#include "base/arena.h"
#include "base/file.h"
#include "entrypoint/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 64 };

static int copy_content(int in, int out, const char *name, ty_error *err)
{
    char chunk[1 << 16];
    ssize_t n;
    while ((n = read(in, chunk, sizeof chunk)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ty_error_errno(err, TY_E_NONE, errno, "cannot read \"%s\"", name);
        if (ty_file_write_all(out, chunk, (size_t)n, name, err) < 0)
            return -1;
    }
    return 0;
}

static int copy_file(const char *from, const char *to, ty_error *err)
{
    struct stat st;
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (in < 0 || fstat(in, &st) < 0) {
        ty_error_errno(err, TY_E_NONE, errno, "cannot open \"%s\"", from);
        if (in >= 0)
            close(in);
        return -1;
    }
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, (st.st_mode & 0777) | 0600);
    int rc =
        out < 0 ? ty_error_errno(err, TY_E_NONE, errno, "cannot create \"%s\"", to) : copy_content(in, out, to, err);
    close(in);
    if (out >= 0 && close(out) < 0 && rc == 0)
        rc = ty_error_errno(err, TY_E_NONE, errno, "cannot write \"%s\"", to);
    return rc;
}

static int copy_link(const char *from, const char *to, ty_error *err)
{
    char target[PATH_MAX];
    ssize_t n = readlink(from, target, sizeof target - 1);
    if (n < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot read link \"%s\"", from);
    target[n] = 0;
    if (symlink(target, to) < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot create link \"%s\"", to);
    return 0;
}

static int copy_folder(const char *from, const char *to, int depth, ty_error *err);

static int copy_entry(const char *from, const char *to, char kind, int depth, ty_error *err)
{
    switch (kind) {
    case 'f':
        return copy_file(from, to, err);
    case 'l':
        return copy_link(from, to, err);
    case 'd':
        if (mkdir(to, 0755) < 0 && errno != EEXIST)
            return ty_error_errno(err, TY_E_NONE, errno, "cannot create folder \"%s\"", to);
        return copy_folder(from, to, depth + 1, err);
    default:
        return 0; /* sockets, pipes and devices are no code */
    }
}

static int copy_folder(const char *from, const char *to, int depth, ty_error *err)
{
    if (depth > MAX_DEPTH)
        return ty_error_set(err, TY_E_LIMIT, "folder \"%s\" is nested deeper than %d", from, MAX_DEPTH);
    ty_arena a;
    ty_file_entry *entries;
    size_t n = 0;
    ty_arena_init(&a);
    int rc = ty_file_list(from, &a, &entries, &n, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = copy_entry(ty_arena_printf(&a, "%s/%s", from, entries[i].name),
                        ty_arena_printf(&a, "%s/%s", to, entries[i].name), entries[i].kind, depth, err);
    ty_arena_fini(&a);
    return rc;
}

static int count_content(const char *folder, size_t *n, ty_error *err)
{
    ty_arena a;
    ty_file_entry *entries;
    ty_arena_init(&a);
    int rc = ty_file_list(folder, &a, &entries, n, err);
    ty_arena_fini(&a);
    return rc;
}

static void empty_folder(const char *folder)
{
    ty_arena a;
    ty_file_entry *entries;
    size_t n = 0;
    ty_arena_init(&a);
    if (ty_file_list(folder, &a, &entries, &n, NULL) == 0)
        for (size_t i = 0; i < n; i++)
            ty_file_remove_tree(ty_arena_printf(&a, "%s/%s", folder, entries[i].name), NULL);
    ty_arena_fini(&a);
}

static int fill(const char *source, const char *folder, ty_error *err)
{
    struct stat st;
    if (stat(source, &st) < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "\"%s\"", source);
    if (S_ISDIR(st.st_mode))
        return copy_folder(source, folder, 0, err);
    if (ty_unpack_knows(source))
        return ty_unpack(source, folder, NULL, err);
    char to[PATH_MAX];
    const char *slash = strrchr(source, '/');
    snprintf(to, sizeof to, "%s/%s", folder, slash ? slash + 1 : source);
    return copy_file(source, to, err);
}

static int refuse_s3(const char *source, ty_error *err)
{
    ty_error_set(err, TY_E_UNSUPPORTED, "sagemaker_submit_directory is \"%.300s\": sources are not downloaded from S3",
                 source);
    return ty_error_help(
        err, "give the archive as an input channel \"code\" and set sagemaker_submit_directory to "
             "/opt/ml/input/data/code/sourcedir.tar.gz (as SageMaker does with network isolation), or bake the "
             "code into the image");
}

static bool same_folder(const char *a, const char *b)
{
    struct stat sa, sb;
    return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

int ty_code_fetch(const char *source, const char *code_folder, ty_code_outcome *outcome, ty_error *err)
{
    size_t n_content = 0;
    *outcome = TY_CODE_PRESENT;
    if (ty_file_is_folder(code_folder) && count_content(code_folder, &n_content, err) < 0)
        return ty_error_wrap(err, "code folder");
    if (n_content > 0)
        return 0;
    *outcome = TY_CODE_ABSENT;
    if (!source || !*source)
        return 0;
    if (strncmp(source, "s3://", 5) == 0)
        return refuse_s3(source, err);
    if (strncmp(source, "file://", 7) == 0)
        source += 7;
    if (strcmp(source, code_folder) == 0 || same_folder(source, code_folder))
        return 0;
    if (ty_file_mkdirs(code_folder, 0755, err) < 0)
        return ty_error_wrap(err, "code folder");
    if (fill(source, code_folder, err) < 0) {
        empty_folder(code_folder);
        return ty_error_wrap(err, "sagemaker_submit_directory");
    }
    *outcome = TY_CODE_FETCHED;
    return 0;
}
