/* entries.h - what a cache folder holds: entries, when each was used last, and the limit of them all.
 *
 *     DIR/<64 hex>/             compiled kernels (compiler/target/cache.h)
 *     DIR/data/<16 hex>.index   what opening data found (container/input/keep.h)
 *
 * An entry's own time of modification is when it was used last. Entries appear whole, by renaming; what a process that
 * died left under a temporary name goes after a day. Nothing else in the folder is touched.
 */
#ifndef TY_BASE_ENTRIES_H
#define TY_BASE_ENTRIES_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define TY_ENTRIES_MAX_BYTES  ((int64_t)256 << 20) /* of a folder, where nobody says otherwise */
#define TY_ENTRIES_DATA       "data"               /* the folder in it */
#define TY_ENTRIES_INDEX      ".index"             /* behind the names in that */
#define TY_ENTRIES_WORK       "ty-kernels-"        /* temporary names begin so: folders, and */
#define TY_ENTRIES_WORK_INDEX "ty-index-"          /* files in DIR/data */
/* Of names, in hexadecimal digits: of kernels, and of indexes, which say themselves what they are of. */
#define TY_ENTRIES_NAME_LENGTH       64
#define TY_ENTRIES_INDEX_NAME_LENGTH 16

typedef struct ty_entry {
    const char *path; /* DIR/... */
    const char *name; /* the hexadecimal digits, without an end */
    bool is_index;
    int64_t bytes, used_s;
} ty_entry;

/* The one used longest ago first; returns how many. A folder that is not there has none. */
int ty_entries_list(const char *dir, ty_arena *a, ty_entry **out);
/* Notes that the entry was used now. */
void ty_entries_touch(const char *path);
/* Those used longest ago go until all together have at most max_bytes (0: TY_ENTRIES_MAX_BYTES); the one with the
 * name `keep`, of which what stands behind a dot does not count, stays. */
void ty_entries_trim(const char *dir, const char *keep, int64_t max_bytes);
/* Removes all entries. */
int ty_entries_clear(const char *dir, int *n_removed, ty_error *err);

#endif
