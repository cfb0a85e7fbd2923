/* flat.h - FlatBuffers, read out of foreign bytes. Private to this folder.
 *
 * Source: google/flatbuffers, docs/source/Internals.md. A table begins with the distance back to its vtable, which has
 * for each field where it lies in the table, or 0 where it is left out. Whatever points outside of the bytes sets
 * `failed`, and reads as what is left out.
 */
#ifndef TY_CONTAINER_INPUT_ARROW_FLAT_H
#define TY_CONTAINER_INPUT_ARROW_FLAT_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct flat {
    const uint8_t *p;
    size_t n;
    bool failed;
} flat;

typedef struct flat_table {
    size_t at; /* 0: there is none */
    size_t vtable;
    uint16_t n; /* bytes of the vtable */
} flat_table;

typedef struct flat_vector {
    size_t at;
    int64_t n;
} flat_vector;

flat_table flat_root(flat *f);
/* A field: a number of 1, 2, 4 or 8 bytes, sign extended; a table; a vector of things of so many bytes; a text, never
 * NULL, in the arena. */
int64_t flat_int(flat *f, flat_table t, int field, size_t bytes, int64_t absent);
flat_table flat_sub(flat *f, flat_table t, int field);
flat_vector flat_list(flat *f, flat_table t, int field, size_t each);
const char *flat_text(flat *f, flat_table t, int field, ty_arena *a);
/* Element i of a vector of tables; a number of 8 bytes at a place in a vector of structs. */
flat_table flat_element(flat *f, flat_vector v, int64_t i);
int64_t flat_long(const flat *f, size_t at);

#endif
