/* file_folder.c - a folder that appears whole.
 *
 * It is filled under a temporary name beside its place and then renamed there. Where a folder stands already the two
 * change places in one step (RENAME_EXCHANGE); file systems that cannot do that have an instant with neither.
 */
#define _GNU_SOURCE
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *name_beside(const char *path, const char *tail)
{
    char *out = NULL;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (asprintf(&out, "%.*s.%s.tmp-%ld-%s", (int)(name - path), path, name, (long)getpid(), tail) < 0)
        return NULL;
    return out;
}

int ty_file_folder_open(ty_file_folder *w, const char *path, ty_error *err)
{
    *w = (ty_file_folder){.path = strdup(path)};
    size_t n = w->path ? strlen(w->path) : 0;
    while (n > 1 && w->path[n - 1] == '/')
        w->path[--n] = 0;
    w->temporary = w->path ? name_beside(w->path, "0") : NULL;
    int rc = w->temporary ? ty_file_remove_tree(w->temporary, err) : ty_error_set(err, TY_E_LIMIT, "no memory");
    if (rc == 0 && mkdir(w->temporary, 0755) < 0)
        rc = ty_error_errno(err, TY_E_NONE, errno, "cannot create folder %s", w->temporary);
    if (rc < 0)
        ty_file_folder_abandon(w);
    return rc;
}

/* Content of files is durable when ty_file_writer has written them; names in folders are not. */
static int sync_tree(const char *path, int depth, ty_error *err)
{
    ty_arena arena;
    ty_file_entry *entry;
    size_t n;
    if (depth > 64)
        return ty_error_set(err, TY_E_LIMIT, "%s: folders nest deeper than 64 levels", path);
    ty_arena_init(&arena);
    int rc = ty_file_list(path, &arena, &entry, &n, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (entry[i].kind == 'd')
            rc = sync_tree(ty_arena_printf(&arena, "%s/%s", path, entry[i].name), depth + 1, err);
    if (rc == 0)
        rc = ty_file_sync_folder(path, err);
    ty_arena_fini(&arena);
    return rc;
}

/* Puts the new folder in the place of the old one, which then has the temporary name. */
static int change_places(const ty_file_folder *w, ty_error *err)
{
    if (renameat2(AT_FDCWD, w->temporary, AT_FDCWD, w->path, RENAME_EXCHANGE) == 0)
        return 0;
    char *aside = name_beside(w->path, "1");
    int rc = aside ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory");
    if (rc == 0 && (rename(w->path, aside) < 0 || rename(w->temporary, w->path) < 0))
        rc = ty_error_errno(err, TY_E_NONE, errno, "cannot put folder %s in its place", w->path);
    if (rc == 0 && rename(aside, w->temporary) < 0)
        rc = ty_error_errno(err, TY_E_NONE, errno, "cannot rename %s", aside);
    free(aside);
    return rc;
}

static int put_in_place(const ty_file_folder *w, ty_error *err)
{
    struct stat st;
    if (lstat(w->path, &st) == 0) {
        if (!S_ISDIR(st.st_mode))
            return ty_error_set(err, TY_E_CREATE, "cannot create folder %s: a file of that name is in the way",
                                w->path);
        return change_places(w, err);
    }
    if (rename(w->temporary, w->path) < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "cannot put folder %s in its place", w->path);
    return 0;
}

int ty_file_folder_commit(ty_file_folder *w, ty_error *err)
{
    int rc = sync_tree(w->temporary, 0, err);
    if (rc == 0)
        rc = put_in_place(w, err);
    if (rc == 0) {
        char *slash = strrchr(w->path, '/');
        char *parent = slash ? strndup(w->path, slash == w->path ? 1 : (size_t)(slash - w->path)) : strdup(".");
        rc = parent ? ty_file_sync_folder(parent, err) : ty_error_set(err, TY_E_LIMIT, "no memory");
        free(parent);
    }
    ty_file_folder_abandon(w);
    return rc;
}

void ty_file_folder_abandon(ty_file_folder *w)
{
    if (w->temporary)
        ty_file_remove_tree(w->temporary, NULL);
    free(w->temporary);
    free(w->path);
    *w = (ty_file_folder){0};
}
