/* file_tree.c - folders: making, listing, removing. Removal walks by descriptors (openat, unlinkat) and never follows a
 * link, so that nobody who can write below the folder can lead it out of there. */
#define _GNU_SOURCE
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_TREE_DEPTH = 128 }; /* each level holds a descriptor open */
enum { MAX_ENTRIES = 1000000 };

static int make_one(const char *path, mode_t mode, ty_error *err)
{
    if (mkdir(path, mode) == 0)
        return 0;
    int saved = errno;
    if (ty_file_is_folder(path)) /* whatever mkdir said: EEXIST, or EROFS and EACCES of parents that are there */
        return 0;
    if (saved == EEXIST)
        return ty_error_set(err, TY_E_CREATE, "cannot create folder %s: a file of that name is in the way", path);
    return ty_error_errno(err, saved == ENOTDIR ? TY_E_CREATE : TY_E_NONE, saved, "cannot create folder %s", path);
}

int ty_file_mkdirs(const char *path, mode_t mode, ty_error *err)
{
    char *copy = strdup(path);
    if (!copy)
        return ty_error_set(err, TY_E_LIMIT, "no memory");
    int rc = 0;
    for (char *at = copy + 1; *copy && *at && rc == 0; at++)
        if (*at == '/' && at[-1] != '/') {
            *at = 0;
            rc = make_one(copy, mode, err);
            *at = '/';
        }
    if (rc == 0)
        rc = make_one(copy, mode, err);
    free(copy);
    return rc;
}

int ty_file_remove(const char *path, ty_error *err)
{
    if (unlink(path) < 0 && errno != ENOENT)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot remove %s", path);
    return 0;
}

static int remove_folder_content(int fd, const char *path, int depth, ty_error *err);

static int remove_entry(int folder_fd, const char *name, const char *path, int depth, ty_error *err)
{
    if (unlinkat(folder_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM && errno != ENOTEMPTY)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot remove %s in %s", name, path);
    int unlink_errno = errno;
    int fd = openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return ty_error_errno(err, TY_E_NONE, errno == ENOTDIR ? unlink_errno : errno, "cannot remove %s in %s", name,
                              path);
    if (remove_folder_content(fd, path, depth + 1, err) < 0)
        return -1;
    if (unlinkat(folder_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot remove folder %s in %s", name, path);
    return 0;
}

/* Takes over fd. `path` is the root of the removal, for messages. */
static int remove_folder_content(int fd, const char *path, int depth, ty_error *err)
{
    DIR *dir = depth < MAX_TREE_DEPTH ? fdopendir(fd) : NULL;
    if (!dir) {
        close(fd);
        return ty_error_set(err, TY_E_LIMIT, "cannot remove %s: more than %d levels deep, or no memory", path,
                            MAX_TREE_DEPTH);
    }
    int rc = 0;
    for (struct dirent *e; rc == 0 && (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            rc = remove_entry(dirfd(dir), e->d_name, path, depth, err);
    closedir(dir);
    return rc;
}

int ty_file_remove_tree(const char *path, ty_error *err)
{
    return remove_entry(AT_FDCWD, path, path, 0, err);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const ty_file_entry *)a)->name, ((const ty_file_entry *)b)->name);
}

static ty_file_entry describe_entry(int folder_fd, const char *name, ty_arena *arena)
{
    ty_file_entry entry = {.name = ty_arena_strdup(arena, name), .kind = 'o'};
    struct stat st;
    if (fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return entry;
    if (S_ISREG(st.st_mode)) {
        entry.kind = 'f';
        entry.n_bytes = (uint64_t)st.st_size;
    } else if (S_ISDIR(st.st_mode)) {
        entry.kind = 'd';
    } else if (S_ISLNK(st.st_mode)) {
        entry.kind = 'l';
    }
    return entry;
}

/* Collects into a growing array and moves it to the arena at the end. */
static int collect_entries(DIR *dir, const char *path, ty_arena *arena, ty_file_entry **list, size_t *n, ty_error *err)
{
    size_t cap = 0;
    for (;;) {
        errno = 0;
        struct dirent *e = readdir(dir);
        if (!e && errno)
            return ty_error_errno(err, TY_E_NONE, errno, "cannot list %s", path);
        if (!e)
            return 0;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (*n == MAX_ENTRIES)
            return ty_error_set(err, TY_E_LIMIT, "%s holds more than %d entries", path, MAX_ENTRIES);
        if (*n == cap) {
            cap = cap ? cap * 2 : 64;
            ty_file_entry *grown = realloc(*list, cap * sizeof **list);
            if (!grown)
                return ty_error_set(err, TY_E_LIMIT, "no memory");
            *list = grown;
        }
        (*list)[(*n)++] = describe_entry(dirfd(dir), e->d_name, arena);
    }
}

int ty_file_list(const char *path, ty_arena *arena, ty_file_entry **entries, size_t *n_entries, ty_error *err)
{
    *entries = NULL;
    *n_entries = 0;
    DIR *dir = opendir(path);
    if (!dir)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot open folder %s", path);
    ty_file_entry *list = NULL;
    size_t n = 0;
    int rc = collect_entries(dir, path, arena, &list, &n, err);
    closedir(dir);
    if (rc == 0) {
        if (n > 1)
            qsort(list, n, sizeof *list, compare_names);
        *entries = ty_arena_copy(arena, list, n * sizeof *list);
        *n_entries = n;
    }
    free(list);
    return rc;
}
