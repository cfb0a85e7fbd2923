/* entries.c - see entries.h. */
#define _GNU_SOURCE
#include "base/entries.h"

#include "base/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define ENTRIES_STALE_S 86400 /* what is this old under a temporary name was left by a process that died */

void ty_entries_touch(const char *path)
{
    utimensat(AT_FDCWD, path, NULL, 0);
}

static int64_t entries_folder_bytes(const char *folder, ty_arena *a)
{
    ty_file_entry *file;
    size_t n = 0;
    int64_t bytes = 0;
    if (ty_file_list(folder, a, &file, &n, NULL) < 0)
        return 0;
    for (size_t i = 0; i < n; i++)
        bytes += (int64_t)file[i].n_bytes;
    return bytes;
}

static bool entries_is_work(const char *name, bool is_index)
{
    const char *begin = is_index ? TY_ENTRIES_WORK_INDEX : TY_ENTRIES_WORK;
    return strncmp(name, begin, strlen(begin)) == 0;
}

static bool entries_is_entry(const ty_file_entry *file, bool is_index)
{
    size_t n = strcspn(file->name, ".");
    if (!is_index)
        return file->kind == 'd' && n == TY_ENTRIES_NAME_LENGTH && file->name[n] == 0;
    return file->kind == 'f' && n == TY_ENTRIES_INDEX_NAME_LENGTH && strcmp(file->name + n, TY_ENTRIES_INDEX) == 0;
}

/* Appends the entries of one kind. */
static int entries_add(const char *dir, bool is_index, ty_arena *a, ty_entry **out, int n_before)
{
    ty_file_entry *file;
    size_t n_files = 0;
    int n = n_before;
    if (ty_file_list(dir, a, &file, &n_files, NULL) < 0)
        return n;
    ty_entry *all = TY_NEW_ARRAY(a, ty_entry, (size_t)n + n_files + 1);
    if (n > 0)
        memcpy(all, *out, (size_t)n * sizeof *all);
    for (size_t i = 0; i < n_files; i++) {
        struct stat st;
        const char *path = ty_arena_printf(a, "%s/%s", dir, file[i].name);
        if (stat(path, &st) < 0)
            continue;
        if (entries_is_work(file[i].name, is_index) && time(NULL) - st.st_mtime > ENTRIES_STALE_S)
            ty_file_remove_tree(path, NULL);
        if (entries_is_entry(&file[i], is_index))
            all[n++] = (ty_entry){path, ty_arena_strndup(a, file[i].name, strcspn(file[i].name, ".")), is_index,
                                  is_index ? (int64_t)st.st_size : entries_folder_bytes(path, a), (int64_t)st.st_mtime};
    }
    *out = all;
    return n;
}

static int entries_by_age(const void *a, const void *b)
{
    const ty_entry *x = a, *y = b;
    return x->used_s != y->used_s ? (x->used_s < y->used_s ? -1 : 1) : strcmp(x->name, y->name);
}

int ty_entries_list(const char *dir, ty_arena *a, ty_entry **out)
{
    *out = NULL;
    int n = entries_add(dir, false, a, out, 0);
    n = entries_add(ty_arena_printf(a, "%s/%s", dir, TY_ENTRIES_DATA), true, a, out, n);
    if (n > 1)
        qsort(*out, (size_t)n, sizeof **out, entries_by_age);
    return n;
}

void ty_entries_trim(const char *dir, const char *keep, int64_t max_bytes)
{
    ty_arena a;
    ty_entry *entry;
    int64_t all = 0, most = max_bytes > 0 ? max_bytes : TY_ENTRIES_MAX_BYTES;
    ty_arena_init(&a);
    int n = ty_entries_list(dir, &a, &entry);
    for (int i = 0; i < n; i++)
        all += entry[i].bytes;
    for (int i = 0; i < n && all > most; i++) {
        if (strlen(entry[i].name) == strcspn(keep, ".") && memcmp(entry[i].name, keep, strlen(entry[i].name)) == 0)
            continue;
        ty_file_remove_tree(entry[i].path, NULL);
        all -= entry[i].bytes;
    }
    ty_arena_fini(&a);
}

int ty_entries_clear(const char *dir, int *n_removed, ty_error *err)
{
    ty_arena a;
    ty_entry *entry;
    int rc = 0;
    *n_removed = 0;
    ty_arena_init(&a);
    int n = ty_entries_list(dir, &a, &entry);
    for (int i = 0; i < n && rc == 0; i++) {
        rc = ty_file_remove_tree(entry[i].path, err);
        *n_removed += rc == 0;
    }
    ty_arena_fini(&a);
    return rc;
}
