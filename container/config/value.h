/* value.h - a value as the job's files carry it and as a script sees it.
 *
 * Hyperparameters are JSON inside JSON strings, read by Python's rules (integers of any size, NaN, infinities) and
 * handed on in Python's spelling. This is the small immutable tree between both ends: value_json.h reads it,
 * python_text.h writes it.
 *
 * Ownership: everything lies in the arena that was given, strings included. A value is copied by assignment; the copy
 * shares its children. Strings are UTF-8 with a final NUL and may hold NULs inside (text_len counts).
 */
#ifndef TY_CONTAINER_CONFIG_VALUE_H
#define TY_CONTAINER_CONFIG_VALUE_H

#include "base/arena.h"
#include "base/doc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ty_value_kind {
    TY_VALUE_NULL,
    TY_VALUE_BOOL,
    TY_VALUE_INT,    /* exact, any size: the decimal digits in `text` */
    TY_VALUE_REAL,   /* a double, NaN and infinities included */
    TY_VALUE_STRING, /* `text`, `text_len` */
    TY_VALUE_LIST,   /* `items`, `n` */
    TY_VALUE_DICT,   /* `keys`, `items`, `n`, in the order of the file */
} ty_value_kind;

typedef struct ty_value ty_value;

struct ty_value {
    ty_value_kind kind;
    bool boolean;
    double real;
    const char *text;
    size_t text_len;
    ty_value *items; /* [n] */
    ty_value *keys;  /* [n], all strings; NULL for a list */
    size_t n;
    size_t cap; /* private */
};

ty_value ty_value_null(void);
ty_value ty_value_bool(bool b);
ty_value ty_value_int(ty_arena *a, int64_t i);
ty_value ty_value_real(double d);
/* Copies `s`; NULL gives the null value, which is how an absent setting is passed on. */
ty_value ty_value_string(ty_arena *a, const char *s);
ty_value ty_value_string_n(ty_arena *a, const char *s, size_t n);
ty_value ty_value_list(void);
ty_value ty_value_dict(void);
/* A list of strings. */
ty_value ty_value_strings(ty_arena *a, const char *const *strings, size_t n);

/* What a file said, as Python would hold it. Integers keep all their digits. */
ty_value ty_value_from_doc(ty_arena *a, const ty_doc *doc);

/* Appends to a list or dict that nobody else shares yet. ty_value_put does not look for an equal key. */
void ty_value_push(ty_arena *a, ty_value *list, ty_value item);
void ty_value_put(ty_arena *a, ty_value *dict, ty_value key, ty_value item);

/* The entry of that name, or NULL (also when `dict` is NULL or no dict). */
const ty_value *ty_value_get(const ty_value *dict, const char *key);
/* The text if v is a string without a NUL inside, else NULL. */
const char *ty_value_text(const ty_value *v);
/* "a string", "a list" ...: for messages. */
const char *ty_value_kind_name(ty_value_kind kind);

#endif
