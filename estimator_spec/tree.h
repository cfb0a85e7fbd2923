/* tree.h - building and changing trees of base/doc.h: request bodies and job files.
 *
 * A map grows in place, so that pointers into it are stale after the next put: finish a part, then put it. Values are
 * copied into the map, what they hold is shared.
 */
#ifndef TY_ESTIMATOR_SPEC_TREE_H
#define TY_ESTIMATOR_SPEC_TREE_H

#include "base/arena.h"
#include "base/doc.h"

ty_doc ty_tree_map(void);
ty_doc ty_tree_list(void);
ty_doc ty_tree_string(ty_arena *a, const char *text);
ty_doc ty_tree_int(ty_arena *a, int64_t value);
ty_doc ty_tree_bool(bool value);
ty_doc ty_tree_null(void);

/* map[path] = value, path dotted, maps on the way made as needed; a value that is there is replaced. */
void ty_tree_put(ty_arena *a, ty_doc *map, const char *path, ty_doc value);
/* The same for one key, which may hold dots. */
void ty_tree_put_key(ty_arena *a, ty_doc *map, const char *key, ty_doc value);
void ty_tree_add(ty_arena *a, ty_doc *list, ty_doc value);
/* NULL if there is none. */
const ty_doc *ty_tree_find(const ty_doc *map, const char *path);
void ty_tree_remove(ty_doc *map, const char *key);

/* Equal in kind and value; maps in any order of keys. */
bool ty_tree_equal(const ty_doc *x, const ty_doc *y);
/* JSON merge patch (RFC 7386): target with the patch laid over it. */
ty_doc ty_tree_patched(ty_arena *a, const ty_doc *target, const ty_doc *patch);
/* The patch that makes `from` into `to`, both maps; an empty map if they are equal. `to` must hold no null in a map. */
ty_doc ty_tree_difference(ty_arena *a, const ty_doc *from, const ty_doc *to);

#endif
