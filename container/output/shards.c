/* shards.c - see shards.h. How many files there will be is known at the end only, when they are given their names. */
#include "container/output/shards.h"

#include "container/output/tfrecord.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARDS_PATH = 4200, SHARDS_BLOCK = 1 << 20 };
#define SHARDS_RECORD_BYTES ((size_t)1 << 30)

static int shards_check_folder(const char *folder, ty_error *err)
{
    ty_arena a;
    ty_file_entry *entry;
    size_t n = 0;
    if (!ty_file_exists(folder))
        return 0;
    ty_arena_init(&a);
    int rc = ty_file_list(folder, &a, &entry, &n, err);
    ty_arena_fini(&a);
    if (rc == 0 && n > 0) {
        ty_error_set(err, TY_E_CREATE, "\"%s\" holds something already", folder);
        return ty_error_help(err, "name a folder that is empty or not there yet");
    }
    return rc;
}

static int shards_make_parent(const char *folder, ty_error *err)
{
    char parent[SHARDS_PATH];
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    while (n > 0 && folder[n - 1] != '/')
        n--;
    if (n <= 1)
        return 0;
    snprintf(parent, sizeof parent, "%.*s", (int)(n - 1), folder);
    return ty_file_mkdirs(parent, 0755, err);
}

int ty_shards_open(ty_shards *s, const char *folder, uint64_t max_bytes, ty_error *err)
{
    *s = (ty_shards){.max_bytes = max_bytes};
    ty_buf_init(&s->frame, SHARDS_RECORD_BYTES + SHARDS_BLOCK);
    if (strlen(folder) > 4096)
        return ty_error_set(err, TY_E_USAGE, "the folder's name is too long");
    if (shards_check_folder(folder, err) < 0 || shards_make_parent(folder, err) < 0)
        return -1;
    return ty_file_folder_open(&s->folder, folder, err);
}

static void shards_path(const ty_shards *s, int file, bool is_final, char out[SHARDS_PATH])
{
    if (is_final)
        snprintf(out, SHARDS_PATH, "%s/part-%05d-of-%05d-%lld.tfrecord", s->folder.temporary, file, s->n_files,
                 (long long)s->records[file]);
    else
        snprintf(out, SHARDS_PATH, "%s/part-%05d", s->folder.temporary, file);
}

static int shards_flush(ty_shards *s, ty_error *err)
{
    int rc = s->frame.len > 0 ? ty_file_writer_add(&s->file, s->frame.data, s->frame.len, err) : 0;
    ty_buf_clear(&s->frame);
    return rc;
}

static int shards_end_file(ty_shards *s, ty_error *err)
{
    if (!s->is_open)
        return 0;
    if (shards_flush(s, err) < 0)
        return -1;
    s->n_bytes += s->file.n_bytes;
    s->is_open = false;
    if (ty_file_writer_commit(&s->file, err) == 0)
        return 0;
    ty_file_writer_abandon(&s->file);
    return -1;
}

static int shards_begin_file(ty_shards *s, ty_error *err)
{
    char path[SHARDS_PATH];
    if (s->n_files == s->cap) {
        int cap = s->cap * 2 + 64;
        int64_t *grown = realloc(s->records, (size_t)cap * sizeof *grown);
        if (grown == NULL)
            return ty_error_set(err, TY_E_LIMIT, "no memory for %d files", cap);
        s->records = grown;
        s->cap = cap;
    }
    shards_path(s, s->n_files, false, path);
    if (ty_file_writer_open(&s->file, path, 0644, err) < 0)
        return -1;
    s->records[s->n_files++] = 0;
    s->is_open = true;
    return 0;
}

int ty_shards_add(ty_shards *s, const void *record, size_t n_bytes, ty_error *err)
{
    uint64_t n = n_bytes + TY_TFRECORD_FRAME_BYTES;
    if (n_bytes > SHARDS_RECORD_BYTES)
        return ty_error_set(err, TY_E_LIMIT, "record %lld has %zu bytes: a record may have a GiB",
                            (long long)s->n_records, n_bytes);
    bool is_full = s->is_open && s->file.n_bytes + s->frame.len + n > s->max_bytes;
    if (is_full && shards_end_file(s, err) < 0)
        return -1;
    if (!s->is_open && shards_begin_file(s, err) < 0)
        return -1;
    if (ty_tfrecord_add(&s->frame, record, n_bytes) < 0)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a record of %zu bytes", n_bytes);
    s->records[s->n_files - 1]++;
    s->n_records++;
    return s->frame.len >= SHARDS_BLOCK ? shards_flush(s, err) : 0;
}

int ty_shards_add_file(ty_shards *s, const char *name, const void *bytes, size_t n_bytes, ty_error *err)
{
    char path[SHARDS_PATH];
    snprintf(path, sizeof path, "%s/%s", s->folder.temporary, name);
    return ty_file_write(path, bytes, n_bytes, 0644, err);
}

static int shards_name_all(ty_shards *s, ty_error *err)
{
    char from[SHARDS_PATH], to[SHARDS_PATH];
    for (int i = 0; i < s->n_files; i++) {
        shards_path(s, i, false, from);
        shards_path(s, i, true, to);
        if (rename(from, to) < 0)
            return ty_error_errno(err, TY_E_CREATE, errno, "cannot name \"%s\"", to);
    }
    return 0;
}

static void shards_free(ty_shards *s)
{
    ty_buf_fini(&s->frame);
    free(s->records);
    s->records = NULL;
    s->cap = 0;
}

int ty_shards_commit(ty_shards *s, ty_error *err)
{
    int rc = shards_end_file(s, err);
    if (rc == 0)
        rc = shards_name_all(s, err);
    if (rc == 0)
        rc = ty_file_folder_commit(&s->folder, err);
    ty_shards_abandon(s);
    return rc;
}

void ty_shards_abandon(ty_shards *s)
{
    if (s->is_open)
        ty_file_writer_abandon(&s->file);
    s->is_open = false;
    if (s->folder.temporary != NULL)
        ty_file_folder_abandon(&s->folder);
    shards_free(s);
}
