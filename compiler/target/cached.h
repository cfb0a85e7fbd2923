/* cached.h - the way through a cache that all targets go: look, say why there is nothing, compile once, keep.
 *
 *     ty_cached c = {.arena = &arena, .dirs = "/var/cache/a:/opt/b", .lock = -1};
 *     ty_cache_key_add(&c.key, ...);
 *     if (!ty_cached_find(&c, load, to)) {         load() was called for an entry that fits, if there is one
 *         ...                                      compile; others who want the same entry wait meanwhile
 *         ty_cached_keep(&c, &objects);
 *     }
 *     ty_cached_end(&c);
 *
 * A cache that is damaged, full or not to be written costs a line in the log and the time to compile, never the run.
 */
#ifndef TY_TARGET_CACHED_H
#define TY_TARGET_CACHED_H

#include "compiler/target/cache.h"

typedef struct ty_cached {
    ty_arena *arena;
    const char *dirs;  /* folders, separated by ':': the first is written (not if it is empty, ":DIR"), all are looked
                          into; NULL: none */
    int64_t max_bytes; /* of the first folder; 0: 256 MiB */
    ty_buf *note;      /* gets a line in words: why the cache had nothing; NULL: the log gets it */
    ty_cache_key key;
    char hex[TY_CACHE_HEX_BYTES]; /* ty_cache_key_hex of it */
    const char *dir;              /* private: the folder that is written; NULL: none */
    int lock;                     /* private: of the entry, or -1 */
} ty_cached;

/* Takes what an entry has. The files have their hashes. */
typedef int ty_cached_load(void *to, const char *folder, const ty_cache_entry *entry, ty_error *err);

/* Folder number i of the list, or NULL behind the last one. */
const char *ty_cached_folder(const ty_cached *c, int i);
/* Loads the entry from the first folder that has it. If none has: says why, takes the lock, and looks again if somebody
 * else has made it meanwhile. */
bool ty_cached_find(ty_cached *c, ty_cached_load *load, void *to);
/* Whether it would be found; if not, the note says why. */
bool ty_cached_is_there(ty_cached *c);
/* Whether what was not found can be kept: there is a folder to write, and the lock is ours. */
bool ty_cached_is_open(const ty_cached *c);
/* Keeps objects under the key where ty_cached_find found none, and makes room. */
void ty_cached_keep(ty_cached *c, const ty_cache_objects *objects);
/* Gives the lock back; may be called again. */
void ty_cached_end(ty_cached *c);

#endif
