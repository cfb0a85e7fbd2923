/* example.h - features by name in the bytes of a tf.train.Example.
 *
 * Source: tensorflow/core/example/{example,feature}.proto; the wire form is protobuf's. Nothing is copied and nothing
 * is built: a feature is a piece of the record, from which its numbers are decoded straight to where they belong.
 * Packed and unpacked lists, also mixed, and entries in any order are taken; of a name that comes twice the last entry
 * counts, of a feature's lists too. Unknown fields are passed over, groups refused.
 */
#ifndef TY_CONTAINER_INPUT_EXAMPLE_H
#define TY_CONTAINER_INPUT_EXAMPLE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ty_feature_kind {
    TY_FEATURE_ABSENT,
    TY_FEATURE_BYTES,
    TY_FEATURE_FLOATS,
    TY_FEATURE_INTS
} ty_feature_kind;

typedef struct ty_feature {
    ty_feature_kind kind;
    const uint8_t *list; /* the list's message, in the record */
    size_t n;
} ty_feature;

enum { TY_EXAMPLE_REMEMBERED = 128 };

/* What is looked for. Zeroed but for names and n; not shared between threads, since it remembers in which order the
 * names came, which is the same in the next record nearly always. */
typedef struct ty_example {
    const char *const *name; /* [n] */
    int n;
    int16_t order[TY_EXAMPLE_REMEMBERED]; /* private: entry k was name order[k] - 1; 0: not looked for, or not known */
    uint16_t name_bytes[TY_EXAMPLE_REMEMBERED];
} ty_example;

/* out[i]: what the record has under name i. */
int ty_example_find(ty_example *x, const uint8_t *record, size_t n, ty_feature *out, ty_error *err);

/* Names and kinds of all entries, in the record's order, for who does not know what is there: calls back for each. */
typedef int ty_example_visit(void *ctx, const char *name, size_t name_bytes, const ty_feature *feature, ty_error *err);
int ty_example_walk(const uint8_t *record, size_t n, ty_example_visit *visit, void *ctx, ty_error *err);

/* Decodes up to max elements and returns how many there are in all (which may be more), or -1 if the bytes are no such
 * list. An absent feature has none. */
int64_t ty_feature_floats(const ty_feature *f, float *out, int64_t max);
int64_t ty_feature_ints(const ty_feature *f, int64_t *out, int64_t max);
typedef struct ty_feature_piece {
    const uint8_t *bytes;
    size_t n;
} ty_feature_piece;
int64_t ty_feature_bytes(const ty_feature *f, ty_feature_piece *out, int64_t max);

#endif
