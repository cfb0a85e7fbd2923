/* modeldir.c - see modeldir.h. */
#include "container/output/modeldir.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

enum { LIST_MAX_BYTES = 16 << 20 };

struct listed {
    struct listed *next;
    const char *name, *kind;
    int64_t n_bytes;
    char sha256[TY_SHA256_HEX_BYTES];
};

struct ty_modeldir {
    ty_arena arena; /* all below */
    const char *dir;
    struct listed *first, **last;
};

int ty_modeldir_check(const char *dir, ty_error *err)
{
    ty_arena arena;
    ty_file_writer probe;
    ty_arena_init(&arena);
    int rc = ty_file_mkdirs(dir, 0755, err);
    if (rc == 0)
        rc = ty_file_writer_open(&probe, ty_arena_printf(&arena, "%s/probe", dir), 0644, err);
    if (rc == 0)
        ty_file_writer_abandon(&probe);
    ty_arena_fini(&arena);
    return rc < 0 ? ty_error_wrap(err, "model folder") : 0;
}

static int remove_old(ty_modeldir *md, ty_error *err)
{
    ty_file_entry *files = NULL;
    size_t n = 0;
    if (ty_file_remove(ty_modeldir_path(md, TY_MODELDIR_LIST_NAME), err) < 0 || ty_file_sync_folder(md->dir, err) < 0 ||
        ty_file_list(md->dir, &md->arena, &files, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (ty_file_is_temporary(files[i].name) && ty_file_remove_tree(ty_modeldir_path(md, files[i].name), err) < 0)
            return -1;
    return 0;
}

int ty_modeldir_open(const char *dir, ty_modeldir **out, ty_error *err)
{
    *out = NULL;
    if (ty_modeldir_check(dir, err) < 0)
        return -1;
    ty_modeldir *md = calloc(1, sizeof *md);
    if (!md)
        return ty_error_set(err, TY_E_LIMIT, "out of memory for the model folder %s", dir);
    ty_arena_init(&md->arena);
    md->dir = ty_arena_strdup(&md->arena, dir);
    md->last = &md->first;
    if (remove_old(md, err) < 0) {
        ty_modeldir_free(md);
        return ty_error_wrap(err, "model folder");
    }
    *out = md;
    return 0;
}

const char *ty_modeldir_path(ty_modeldir *md, const char *name)
{
    return ty_arena_printf(&md->arena, "%s/%s", md->dir, name);
}

/* Relative, every part a plain name, and not the list itself. */
static int check_name(const char *name, ty_error *err)
{
    bool ok = strcmp(name, TY_MODELDIR_LIST_NAME) != 0;
    for (const char *part = name; ok; part += strcspn(part, "/") + 1) {
        size_t n = strcspn(part, "/");
        ok = n > 0 && strncmp(part, ".", n) != 0 && !(n == 2 && strncmp(part, "..", 2) == 0);
        if (part[n] == 0)
            break;
    }
    return ok ? 0 : ty_error_set(err, TY_E_CONFIG, "model file \"%s\": expected a name within the model folder", name);
}

int ty_modeldir_add(ty_modeldir *md, const char *name, const char *kind, ty_error *err)
{
    if (check_name(name, err) < 0)
        return -1;
    uint8_t digest[TY_SHA256_BYTES];
    const char *path = ty_modeldir_path(md, name);
    if (ty_sha256_file(path, digest, err) < 0)
        return ty_error_wrap(err, "model folder");
    struct listed *file = TY_NEW(&md->arena, struct listed);
    *file = (struct listed){.name = ty_arena_strdup(&md->arena, name),
                            .kind = ty_arena_strdup(&md->arena, kind),
                            .n_bytes = ty_file_size(path)};
    ty_sha256_hex(digest, file->sha256);
    for (struct listed *f = md->first; f; f = f->next) /* put twice: the newer bytes count */
        if (strcmp(f->name, name) == 0) {
            file->next = f->next;
            *f = *file;
            return 0;
        }
    *md->last = file;
    md->last = &file->next;
    return 0;
}

static int make_parents(ty_modeldir *md, const char *name, ty_error *err)
{
    const char *slash = strrchr(name, '/');
    if (!slash)
        return 0;
    return ty_file_mkdirs(ty_arena_printf(&md->arena, "%s/%.*s", md->dir, (int)(slash - name), name), 0755, err);
}

int ty_modeldir_put(ty_modeldir *md, const char *name, const char *kind, const void *bytes, size_t n_bytes,
                    ty_error *err)
{
    if (check_name(name, err) < 0)
        return -1;
    if (make_parents(md, name, err) < 0 || ty_file_write(ty_modeldir_path(md, name), bytes, n_bytes, 0644, err) < 0)
        return ty_error_wrap(err, "model folder");
    return ty_modeldir_add(md, name, kind, err);
}

static void put_text(ty_json_writer *w, const char *key, const char *text)
{
    if (text)
        ty_json_put_string(w, key, text);
}

static void put_files(ty_json_writer *w, const ty_modeldir *md)
{
    ty_json_open_list(w, "files");
    for (const struct listed *f = md->first; f; f = f->next) {
        ty_json_open_map(w, NULL);
        ty_json_put_string(w, "name", f->name);
        ty_json_put_string(w, "kind", f->kind);
        ty_json_put_int(w, "bytes", f->n_bytes);
        ty_json_put_string(w, "sha256", f->sha256);
        ty_json_close(w);
    }
    ty_json_close(w);
}

static void put_info(ty_json_writer *w, const ty_modeldir *md, const ty_modelinfo *info)
{
    ty_json_open_map(w, NULL);
    ty_json_put_int(w, "version", 1);
    put_text(w, "format", info->format);
    put_text(w, "origin", info->origin);
    put_text(w, "trainyard", info->version);
    ty_json_put_int(w, "step", info->step);
    ty_json_put_int(w, "epoch", info->epoch);
    ty_json_open_map(w, "metrics");
    for (size_t i = 0; i < info->n_metrics; i++)
        ty_json_put_float(w, info->metrics[i].name, info->metrics[i].value);
    ty_json_close(w);
    put_files(w, md);
    if (info->has_index) {
        ty_json_open_map(w, "data");
        ty_json_put_int(w, "index_base", info->index_base);
        ty_json_put_int(w, "index_width", info->index_width);
        ty_json_close(w);
    }
    if (info->recipe_json)
        ty_json_put_raw(w, "recipe", info->recipe_json);
    ty_json_close(w);
}

int ty_modeldir_commit(ty_modeldir *md, const ty_modelinfo *info, ty_error *err)
{
    ty_buf text;
    ty_buf_init(&text, LIST_MAX_BYTES);
    ty_json_writer w;
    ty_json_writer_init(&w, &text, TY_JSON_SPACED);
    put_info(&w, md, info);
    ty_buf_addc(&text, '\n');
    int rc = text.failed
                 ? ty_error_set(err, TY_E_LIMIT, "%s does not fit %d bytes", TY_MODELDIR_LIST_NAME, LIST_MAX_BYTES)
                 : ty_file_write(ty_modeldir_path(md, TY_MODELDIR_LIST_NAME), text.data, text.len, 0644, err);
    ty_buf_fini(&text);
    return rc < 0 ? ty_error_wrap(err, "model folder") : 0;
}

void ty_modeldir_free(ty_modeldir *md)
{
    if (!md)
        return;
    ty_arena_fini(&md->arena);
    free(md);
}
