/* s3_folder.c - a prefix becomes a folder, a folder a prefix.
 *
 * Keys are listed twice: first to refuse what cannot lie in a folder, and to know how much comes; then to fetch. What
 * must be remembered of a key is eight bytes, so that a million of them are no matter.
 */
#define _GNU_SOURCE
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "estimator_spec/aws/s3_parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_DEPTH = 128 };

/* ---- names seen: a set of hashes, open addressing; 0 is free ---- */

typedef struct name_set {
    uint64_t *at;
    size_t n, n_slots; /* a power of two, at most half full */
} name_set;

static uint64_t *slot_of(uint64_t *at, size_t n_slots, uint64_t hash)
{
    size_t i = hash & (n_slots - 1);
    while (at[i] && at[i] != hash)
        i = (i + 1) & (n_slots - 1);
    return &at[i];
}

static bool grow(name_set *s)
{
    size_t n_slots = s->n_slots ? 2 * s->n_slots : 1024;
    uint64_t *more = calloc(n_slots, sizeof *more);
    if (!more)
        return false;
    for (size_t i = 0; i < s->n_slots; i++)
        if (s->at[i])
            *slot_of(more, n_slots, s->at[i]) = s->at[i];
    free(s->at);
    s->at = more;
    s->n_slots = n_slots;
    return true;
}

static uint64_t hash_of(const char *name, size_t n_bytes, char kind)
{
    uint64_t hash = ty_fnv1a(ty_fnv1a(TY_FNV_START, name, n_bytes), &kind, 1);
    hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ? hash : 1;
}

static bool has(const name_set *s, uint64_t hash)
{
    return s->n_slots > 0 && *slot_of(s->at, s->n_slots, hash) == hash;
}

static int add(name_set *s, uint64_t hash, ty_error *err)
{
    if (2 * (s->n + 1) > s->n_slots && !grow(s))
        return ty_error_set(err, TY_E_LIMIT, "no memory");
    uint64_t *slot = slot_of(s->at, s->n_slots, hash);
    s->n += *slot == 0;
    *slot = hash;
    return 0;
}

/* ---- a prefix becomes a folder ---- */

typedef struct getter {
    ty_s3 *s3;
    const ty_s3_place *at;
    const char *folder;
    ty_s3_folder *how;
    name_set names;
    uint64_t index; /* of the next object that is no folder */
    uint64_t n_keys, all_bytes, done_bytes;
    const ty_s3_options *told; /* whose progress the caller wants */
} getter;

/* The name of an object that is wanted; *name NULL: it is not. */
static int name_of(getter *g, const ty_s3_object *o, ty_arena *arena, const char **name, bool *is_folder, ty_error *err)
{
    const char *rest = o->key + strlen(g->at->key);
    *is_folder = o->key[strlen(o->key) - 1] == '/';
    *name = NULL;
    if (*is_folder && strspn(rest, "/") == strlen(rest)) /* the folder itself */
        return 0;
    if (!*is_folder && g->how->wants && !g->how->wants(g->how->ctx, o, g->index++))
        return 0;
    return ty_s3_name_below(g->at->key, o->key, arena, name, err);
}

static int refuse_twice(const char *key, const char *name, size_t n_bytes, bool is_folder, ty_error *err)
{
    ty_error_set(err, TY_E_REFUSED, "the key \"%.300s\" cannot be a file: another one is the %s \"%.*s\" already", key,
                 is_folder ? "folder" : "file", (int)(n_bytes < 300 ? n_bytes : 300), name);
    return ty_error_help(err, "give a prefix that has only one of them, or rename one");
}

/* All folders above a name (and itself, if it ends with a slash). */
static int check_folders(getter *g, const char *key, const char *name, ty_error *err)
{
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t n = (size_t)(slash - name);
        if (has(&g->names, hash_of(name, n, 'f')))
            return refuse_twice(key, name, n, false, err);
        if (add(&g->names, hash_of(name, n, 'd'), err) < 0)
            return -1;
    }
    return 0;
}

static int check_object(void *ctx, const ty_s3_object *o, ty_error *err)
{
    getter *g = ctx;
    ty_arena arena;
    const char *name;
    bool is_folder;
    ty_arena_init(&arena);
    g->n_keys++;
    int rc = name_of(g, o, &arena, &name, &is_folder, err);
    if (rc == 0 && name) {
        size_t n = strlen(name);
        rc = check_folders(g, o->key, name, err);
        if (rc == 0 && !is_folder && has(&g->names, hash_of(name, n, 'f')))
            rc = refuse_twice(o->key, name, n, false, err);
        if (rc == 0 && !is_folder && has(&g->names, hash_of(name, n, 'd')))
            rc = refuse_twice(o->key, name, n, true, err);
        if (rc == 0 && !is_folder)
            rc = add(&g->names, hash_of(name, n, 'f'), err);
        g->all_bytes += is_folder ? 0 : o->n_bytes;
    }
    ty_arena_fini(&arena);
    return rc;
}

static void tell(void *ctx, uint64_t done_bytes, uint64_t total_bytes)
{
    getter *g = ctx;
    (void)total_bytes;
    if (g->told->progress)
        g->told->progress(g->told->progress_ctx, g->done_bytes + done_bytes, g->all_bytes);
}

static int fetch_object(void *ctx, const ty_s3_object *o, ty_error *err)
{
    getter *g = ctx;
    ty_arena arena;
    const char *name;
    bool is_folder;
    ty_s3_object got = {0};
    ty_arena_init(&arena);
    int rc = name_of(g, o, &arena, &name, &is_folder, err);
    if (rc == 0 && name) {
        char *path = ty_arena_printf(&arena, "%s/%s", g->folder, name);
        char *slash = strrchr(path, '/');
        *slash = 0;
        rc = ty_file_mkdirs(path, 0755, err);
        *slash = '/';
        if (rc == 0 && !is_folder)
            rc = ty_s3_get(g->s3, &(ty_s3_place){g->at->bucket, o->key}, path, &got, err);
        if (rc == 0 && !is_folder) {
            g->how->n_files++;
            g->how->n_bytes += got.n_bytes;
            g->done_bytes += got.n_bytes;
        }
        if (is_folder && o->n_bytes > 0)
            ty_log_warning("aws", "s3://%s/%s: a folder, its %llu bytes are left out", g->at->bucket, o->key,
                           (unsigned long long)o->n_bytes);
    }
    ty_arena_fini(&arena);
    return rc;
}

int ty_s3_get_folder(ty_s3 *s3, const ty_s3_place *at, const char *folder, ty_s3_folder *how, ty_error *err)
{
    ty_s3_folder own = {0};
    ty_s3_options told = s3->options;
    getter g = {.s3 = s3, .at = at, .folder = folder, .how = how ? how : &own, .told = &told};
    g.how->n_files = g.how->n_bytes = 0;
    int rc = ty_s3_list(s3, at, check_object, &g, err);
    free(g.names.at);
    if (rc == 0 && g.n_keys == 0) {
        ty_error_set(err, TY_E_NOT_FOUND, "there is no object under s3://%s/%s", at->bucket, at->key);
        return ty_error_help(err, "`aws s3 ls` shows what is there; keys know upper and lower case");
    }
    if (rc < 0 || ty_file_mkdirs(folder, 0755, err) < 0)
        return -1;
    g.index = 0;
    s3->options.progress = tell;
    s3->options.progress_ctx = &g;
    rc = ty_s3_list(s3, at, fetch_object, &g, err);
    s3->options = told;
    return rc;
}

/* ---- a folder becomes a prefix ---- */

typedef struct putter {
    ty_s3 *s3;
    const ty_s3_place *at;
    ty_s3_folder *how;
} putter;

static int put_folder(putter *p, const char *folder, const char *key, int depth, ty_error *err);

static int put_entry(putter *p, const ty_file_entry *e, const char *path, const char *key, int depth, ty_error *err)
{
    struct stat st;
    if (e->kind == 'd')
        return put_folder(p, path, key, depth + 1, err);
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode)) {
        ty_log_warning("aws", "%s is not sent: it is neither a file nor a link to one", path);
        return 0;
    }
    if (ty_s3_put_file(p->s3, &(ty_s3_place){p->at->bucket, key}, path, &p->how->put, err) < 0)
        return -1;
    p->how->n_files++;
    p->how->n_bytes += (uint64_t)st.st_size;
    return 0;
}

static int put_folder(putter *p, const char *folder, const char *key, int depth, ty_error *err)
{
    ty_arena arena;
    ty_file_entry *entries;
    size_t n = 0;
    if (depth == MAX_DEPTH)
        return ty_error_set(err, TY_E_LIMIT, "folders lie more than %d deep at %s", MAX_DEPTH, folder);
    ty_arena_init(&arena);
    int rc = ty_file_list(folder, &arena, &entries, &n, err);
    size_t bytes = strlen(key);
    const char *slash = bytes == 0 || key[bytes - 1] == '/' ? "" : "/";
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = put_entry(p, &entries[i], ty_arena_printf(&arena, "%s/%s", folder, entries[i].name),
                       ty_arena_printf(&arena, "%s%s%s", key, slash, entries[i].name), depth, err);
    ty_arena_fini(&arena);
    return rc;
}

int ty_s3_put_folder(ty_s3 *s3, const ty_s3_place *at, const char *folder, ty_s3_folder *how, ty_error *err)
{
    ty_s3_folder own = {0};
    putter p = {s3, at, how ? how : &own};
    p.how->n_files = p.how->n_bytes = 0;
    return put_folder(&p, folder, at->key, 0, err);
}
