/* files.c - walks a channel's folder. */
#include "container/input/files.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct files_list {
    ty_arena *arena;
    ty_data_file *file;
    int n, cap;
} files_list;

static int files_add(files_list *l, const char *path, const char *name, int64_t n_bytes, ty_error *err)
{
    if (l->n == TY_FILES_MAX)
        return ty_error_set(err, TY_E_LIMIT, "more than %d data files", TY_FILES_MAX);
    if (l->n == l->cap) {
        int cap = l->cap == 0 ? 64 : l->cap * 2;
        ty_data_file *grown = realloc(l->file, sizeof *grown * (size_t)cap);
        if (grown == NULL)
            return ty_error_set(err, TY_E_LIMIT, "no memory for a list of %d files", cap);
        l->file = grown;
        l->cap = cap;
    }
    l->file[l->n++] = (ty_data_file){path, name, n_bytes};
    return 0;
}

static int files_walk(files_list *l, const char *folder, size_t root_bytes, int depth, ty_error *err);

/* One directory entry: a file is taken, a folder walked, everything else passed over. */
static int files_visit(files_list *l, const char *folder, const char *entry, size_t root_bytes, int depth,
                       ty_error *err)
{
    if (entry[0] == '.' || entry[0] == '_')
        return 0;
    const char *path = ty_arena_printf(l->arena, "%s/%s", folder, entry);
    struct stat st;
    if (stat(path, &st) < 0) {
        ty_error_errno(err, TY_E_NONE, errno, "cannot look at an entry of a channel");
        ty_error_at(err, "%s", path);
        return ty_error_help(err, "a link that points nowhere looks like this too; remove it or rename it to _name");
    }
    if (S_ISDIR(st.st_mode))
        return files_walk(l, path, root_bytes, depth + 1, err);
    if (!S_ISREG(st.st_mode) || st.st_size == 0)
        return 0;
    return files_add(l, path, path + root_bytes + 1, st.st_size, err);
}

static int files_walk(files_list *l, const char *folder, size_t root_bytes, int depth, ty_error *err)
{
    if (depth > TY_FILES_MAX_DEPTH) {
        ty_error_set(err, TY_E_LIMIT, "folders are nested deeper than %d, or links run in a circle",
                     TY_FILES_MAX_DEPTH);
        return ty_error_at(err, "%s", folder);
    }
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        ty_error_errno(err, TY_E_NONE, errno, "cannot list a folder of data");
        return ty_error_at(err, "%s", folder);
    }
    int rc = 0;
    struct dirent *entry;
    while (rc == 0 && (errno = 0, entry = readdir(dir)) != NULL)
        rc = files_visit(l, folder, entry->d_name, root_bytes, depth, err);
    if (rc == 0 && errno != 0) {
        ty_error_errno(err, TY_E_NONE, errno, "cannot list a folder of data");
        rc = ty_error_at(err, "%s", folder);
    }
    closedir(dir);
    return rc;
}

static int files_compare(const void *a, const void *b)
{
    return strcmp(((const ty_data_file *)a)->name, ((const ty_data_file *)b)->name);
}

static int files_add_path(files_list *l, const char *given, ty_error *err)
{
    struct stat st;
    if (stat(given, &st) < 0) {
        ty_error_errno(err, errno == ENOENT ? TY_E_CHANNEL : TY_E_NONE, errno, "no data at this path");
        ty_error_at(err, "%s", given);
        return ty_error_help(err, "check the channel's name in the recipe and the job's input channels");
    }
    char *path = ty_arena_strdup(l->arena, given);
    if (!S_ISDIR(st.st_mode)) {
        const char *slash = strrchr(path, '/');
        return files_add(l, path, slash != NULL ? slash + 1 : path, st.st_size, err);
    }
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        path[--n] = 0;
    int first = l->n;
    if (files_walk(l, path, n, 0, err) < 0)
        return -1;
    if (l->n > first)
        qsort(l->file + first, (size_t)(l->n - first), sizeof *l->file, files_compare);
    return 0;
}

/* What Hugging Face's save_to_disk leaves beside its Arrow files tells about them, and is no data. */
static bool files_is_companion(const ty_data_file *file)
{
    static const char *const names[] = {"state.json", "dataset_info.json", "dataset_dict.json"};
    const char *slash = strrchr(file->name, '/'), *base = slash ? slash + 1 : file->name;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(base, names[i]) == 0)
            return true;
    return false;
}

static void files_leave_companions(files_list *l)
{
    bool has_arrow = false;
    int n = 0;
    for (int i = 0; i < l->n && !has_arrow; i++) {
        size_t length = strlen(l->file[i].name);
        has_arrow = length > 6 && strcmp(l->file[i].name + length - 6, ".arrow") == 0;
    }
    for (int i = 0; has_arrow && i < l->n; i++)
        if (!files_is_companion(&l->file[i]))
            l->file[n++] = l->file[i];
    l->n = has_arrow ? n : l->n;
}

int ty_files_list(const char *const *paths, int n_paths, ty_arena *arena, ty_data_file **out, int *n_out, ty_error *err)
{
    files_list l = {.arena = arena};
    int rc = 0;
    for (int i = 0; rc == 0 && i < n_paths; i++)
        rc = files_add_path(&l, paths[i], err);
    files_leave_companions(&l);
    if (rc == 0 && l.n == 0) {
        ty_error_set(err, TY_E_CHANNEL,
                     "no data files: expected regular files that are not empty and whose names do "
                     "not start with '.' or '_'");
        rc = n_paths > 0 ? ty_error_at(err, "%s", paths[0]) : -1;
    }
    if (rc == 0) {
        *out = ty_arena_copy(arena, l.file, sizeof *l.file * (size_t)l.n);
        *n_out = l.n;
    }
    free(l.file);
    return rc;
}

bool ty_file_matches(const ty_data_file *file, const char *pattern)
{
    const char *slash = strrchr(file->name, '/');
    return fnmatch(pattern, file->name, 0) == 0 || (slash != NULL && fnmatch(pattern, slash + 1, 0) == 0);
}
