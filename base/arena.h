/* arena.h - memory that lives and dies together.
 *
 * An arena hands out memory that is freed all at once by arena_fini. Allocation cannot fail visibly: when the system
 * has no memory the process is beyond help and arena_alloc aborts after one line on stderr (the only place allowed to).
 * Memory is zeroed and aligned to 16 bytes. Under AddressSanitizer every object is its own malloc.
 * Not thread-safe: one thread an arena.
 */
#ifndef TY_BASE_ARENA_H
#define TY_BASE_ARENA_H

#include "base/error.h"

#include <stddef.h>

typedef struct ty_arena {
    struct arena_block *head; /* newest block; NULL when empty. Private. */
    size_t used_bytes;        /* handed out so far */
} ty_arena;

void ty_arena_init(ty_arena *a);
void ty_arena_fini(ty_arena *a);
/* The same after overwriting all that was in it: for arenas that held secrets. */
void ty_arena_wipe(ty_arena *a);
/* Zeroed memory of n_bytes (0 gives a valid, unique pointer). */
void *ty_arena_alloc(ty_arena *a, size_t n_bytes);
void *ty_arena_copy(ty_arena *a, const void *src, size_t n_bytes);
char *ty_arena_strdup(ty_arena *a, const char *s);
char *ty_arena_strndup(ty_arena *a, const char *s, size_t n);
char *ty_arena_printf(ty_arena *a, const char *fmt, ...) TY_PRINTF(2, 3);

/* As calloc: a product that overflows counts as no memory. */
void *ty_arena_alloc_array(ty_arena *a, size_t elem_bytes, size_t n_elems);

#define TY_NEW(arena, type)          ((type *)ty_arena_alloc((arena), sizeof(type)))
#define TY_NEW_ARRAY(arena, type, n) ((type *)ty_arena_alloc_array((arena), sizeof(type), (size_t)(n)))

#endif
