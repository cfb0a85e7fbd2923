/* doc.h - one tree for JSON and YAML, in which every value knows where it stands.
 *
 * The tree lives in the arena that it was parsed into, strings and a copy of the source text included. Maps keep the
 * order of the file and hold no key twice. Strings never contain a NUL. Lines and columns count from 1, columns in
 * characters.
 *
 * Getters check: the error names place and kind, and shows the line.
 *     train.yaml:7:13: expected integer, found string "many"
 */
#ifndef TY_BASE_DOC_H
#define TY_BASE_DOC_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ty_doc_kind {
    TY_DOC_NULL,
    TY_DOC_BOOL,
    TY_DOC_INT,   /* fits int64_t */
    TY_DOC_FLOAT, /* also an integer beyond int64_t; `raw` still has all its digits */
    TY_DOC_STRING,
    TY_DOC_LIST,
    TY_DOC_MAP,
} ty_doc_kind;

typedef struct ty_doc_source {
    const char *name; /* as in messages: "train.yaml", or "hyperparameter \"epochs\"" */
    const char *text; /* what was parsed, NUL-terminated */
    size_t len;
    bool is_override; /* a value given from outside; it has no lines */
} ty_doc_source;

typedef struct ty_doc ty_doc;
struct ty_doc {
    ty_doc_kind kind;
    bool quoted;           /* the scalar stood in quotes or in a YAML block */
    uint32_t line, column; /* of the value */
    uint32_t width;        /* characters that a caret line marks; 0 for lists and maps */
    uint32_t key_line, key_column;
    const char *key; /* in a map; NULL elsewhere */
    const char *raw; /* a scalar as the file spells it (strings: as decoded); "" for lists and maps */
    const ty_doc_source *source;
    union {
        bool boolean;
        int64_t integer;
        double number;
        const char *string;
        struct {
            ty_doc *items; /* n_items values, in file order */
            uint32_t n_items;
        };
    };
};

/* What a reader refuses to go past. Zero fields take the reader's default (see json.h, yaml.h). */
typedef struct ty_doc_limits {
    size_t max_bytes;
    int max_depth;      /* at most TY_DOC_MAX_DEPTH */
    uint32_t max_nodes; /* default TY_DOC_MAX_NODES: "0,0,0,..." costs 50 bytes of tree a byte of text */
} ty_doc_limits;
#define TY_DOC_MAX_DEPTH 256
#define TY_DOC_MAX_NODES 1000000

/* The value of a key; NULL if there is none, or if `map` is NULL or no map. */
const ty_doc *ty_doc_find(const ty_doc *map, const char *key);
/* The i-th value of a list or map; NULL if there is none. */
const ty_doc *ty_doc_at(const ty_doc *list, size_t i);
static inline size_t ty_doc_len(const ty_doc *d)
{
    return d && (d->kind == TY_DOC_LIST || d->kind == TY_DOC_MAP) ? d->n_items : 0;
}

/* 0 if d is of this kind, else -1 with the error "expected ..., found ...". */
int ty_doc_expect(const ty_doc *d, ty_doc_kind kind, ty_error *err);
int ty_doc_bool(const ty_doc *d, bool *out, ty_error *err);
int ty_doc_int(const ty_doc *d, int64_t *out, ty_error *err);
/* Takes integers too. */
int ty_doc_float(const ty_doc *d, double *out, ty_error *err);
/* The string belongs to the tree. Any scalar of an override counts as a string. */
int ty_doc_string(const ty_doc *d, const char **out, ty_error *err);

const char *ty_doc_kind_text(ty_doc_kind kind); /* "integer" */
/* `string "x"`, `integer 3`, `list of 4` into out; long strings are cut. Returns out. */
const char *ty_doc_describe(const ty_doc *d, char *out, size_t n);
/* "train.yaml:14:5"; an override gives its name. Returns out. */
const char *ty_doc_place(const ty_doc *d, char *out, size_t n);

/* An error at the value, with its line and carets under it. `note` (may be NULL) stands behind them. Returns -1. */
int ty_doc_error(const ty_doc *d, ty_error *err, ty_code code, const char *note, const char *fmt, ...) TY_PRINTF(5, 6);
/* The same at the key. */
int ty_doc_error_key(const ty_doc *d, ty_error *err, ty_code code, const char *note, const char *fmt, ...)
    TY_PRINTF(5, 6);
/* For readers of text: sets place and excerpt of an error already set. */
void ty_doc_excerpt(const ty_doc_source *source, uint32_t line, uint32_t column, uint32_t width, const char *note,
                    ty_error *err);

/* Sets the value at a dotted path ("optimizer.adamw.lr", "layers.0.size") from text, which is read as a plain YAML
 * scalar, or as YAML (JSON included) if it begins with [ { " or a single quote. Maps on the way are made as needed; a
 * scalar on the way is an error. `from` names the origin in messages and in --origin: `hyperparameter "lr"`.
 * Pointers to nodes of the tree that were taken before are stale afterwards: override first, then look. */
int ty_doc_override(ty_arena *arena, ty_doc *root, const char *path, const char *text, const char *from, ty_error *err);

/* An empty map, for trees that consist of overrides only. */
ty_doc *ty_doc_new_map(ty_arena *arena, const char *source_name);

#endif
