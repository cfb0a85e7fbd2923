/* cached.c - see cached.h. */
#include "compiler/target/cached.h"

#include "base/entries.h"
#include "base/file.h"
#include "base/log.h"

#include <string.h>

enum { CACHED_WAIT_MS = 300000 };

const char *ty_cached_folder(const ty_cached *c, int i)
{
    const char *at = c->dirs;
    for (; at && i > 0; i--) {
        at = strchr(at, ':');
        at = at ? at + 1 : NULL;
    }
    return at ? ty_arena_strndup(c->arena, at, strcspn(at, ":")) : NULL;
}

static int cached_load(ty_cached *c, const char *folder, ty_cached_load *load, void *to, ty_error *err)
{
    ty_cache_entry entry;
    if (ty_cache_read(folder, c->arena, &entry, err) < 0 || ty_cache_verify(folder, &entry, err) < 0)
        return -1;
    return load(to, folder, &entry, err);
}

static bool cached_look(ty_cached *c, ty_cached_load *load, void *to)
{
    for (int i = 0;; i++) {
        ty_error err = {0};
        const char *dir = ty_cached_folder(c, i);
        const char *folder = dir ? ty_arena_printf(c->arena, "%s/%s", dir, c->hex) : NULL;
        if (!folder)
            return false;
        if (!*dir || !ty_file_is_folder(folder))
            continue;
        if (cached_load(c, folder, load, to, &err) == 0) {
            ty_entries_touch(folder);
            return true;
        }
        ty_log_warning("cache", "a damaged entry is left out and compiled anew: %s", err.message);
        if (i == 0)
            ty_file_remove_tree(folder, NULL);
    }
}

static void cached_say_miss(ty_cached *c)
{
    ty_buf why;
    ty_buf *out = c->note ? c->note : &why;
    ty_buf_init(&why, 1 << 16);
    ty_cache_explain(ty_cached_folder(c, 0), &c->key, out);
    if (!c->note)
        ty_log_info("cache", "kernels are compiled: %s", why.data);
    ty_buf_fini(&why);
}

bool ty_cached_find(ty_cached *c, ty_cached_load *load, void *to)
{
    if (cached_look(c, load, to))
        return true;
    cached_say_miss(c);
    c->dir = *ty_cached_folder(c, 0) ? ty_cached_folder(c, 0) : NULL;
    if (c->dir && ty_file_mkdirs(c->dir, 0700, NULL) == 0)
        c->lock = ty_cache_lock(c->dir, c->hex, CACHED_WAIT_MS);
    return c->lock >= 0 && cached_look(c, load, to); /* whoever had the lock has made it */
}

bool ty_cached_is_there(ty_cached *c)
{
    bool found = false;
    for (int i = 0; !found && ty_cached_folder(c, i); i++) {
        ty_cache_entry entry;
        const char *folder = ty_arena_printf(c->arena, "%s/%s", ty_cached_folder(c, i), c->hex);
        found = ty_cache_read(folder, c->arena, &entry, NULL) == 0 && ty_cache_verify(folder, &entry, NULL) == 0;
    }
    if (!found && c->note && c->dirs)
        cached_say_miss(c);
    return found;
}

bool ty_cached_is_open(const ty_cached *c)
{
    return c->dir && c->lock >= 0;
}

void ty_cached_keep(ty_cached *c, const ty_cache_objects *objects)
{
    ty_error err = {0};
    const char *entry = c->dir ? ty_arena_printf(c->arena, "%s/%s", c->dir, c->hex) : NULL;
    if (!entry || ty_file_is_folder(entry))
        return;
    if (ty_file_mkdirs(c->dir, 0700, &err) < 0 || ty_cache_store(objects, &c->key, entry, &err) < 0)
        ty_log_warning("cache", "kernels are not kept for the next run: %s", err.message);
    else
        ty_entries_trim(c->dir, c->hex, c->max_bytes);
}

void ty_cached_end(ty_cached *c)
{
    ty_cache_unlock(c->lock, c->dir, c->hex);
    c->lock = -1;
}
