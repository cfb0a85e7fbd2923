/* names.h - a map from names to small numbers, in an arena. Private to compiler/import. */
#ifndef TY_COMPILER_IMPORT_NAMES_H
#define TY_COMPILER_IMPORT_NAMES_H

#include "base/arena.h"

#include <stdint.h>

typedef struct ty_names {
    ty_arena *arena;
    struct names_slot *slots;
    uint32_t n_slots; /* a power of two, or 0 */
    uint32_t n_used;
} ty_names;

void ty_names_init(ty_names *m, ty_arena *arena);
/* The number stored under name, or -1. */
int ty_names_find(const ty_names *m, const char *name);
/* Stores or replaces. The name is not copied: it must live as long as the map. */
void ty_names_put(ty_names *m, const char *name, int number);

#endif
