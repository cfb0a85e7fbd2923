/* json.h - strict JSON in, exact JSON out.
 *
 * Reading follows RFC 8259 to the letter and is stricter where the RFC leaves a choice: valid UTF-8 only, no byte order
 * mark, no duplicate keys, no lone surrogates, no \u0000, nothing behind the value, numbers within the range of double.
 * Size and depth are checked before anything is built. Defaults: 16 MiB, 64 levels.
 */
#ifndef TY_BASE_JSON_H
#define TY_BASE_JSON_H

#include "base/doc.h"

#define TY_JSON_MAX_BYTES ((size_t)16 << 20)
#define TY_JSON_MAX_DEPTH 64

/* Parses text[0..len-1] into a tree in the arena; `name` is the file's name for messages. limits may be NULL. */
int ty_json_parse(ty_arena *arena, const char *name, const char *text, size_t len, const ty_doc_limits *limits,
                  ty_doc **out, ty_error *err);
/* The same from a file. */
int ty_json_read(ty_arena *arena, const char *path, const ty_doc_limits *limits, ty_doc **out, ty_error *err);

/* How JSON is spelled: bits to be combined. */
enum {
    TY_JSON_COMPACT = 0,                             /* {"a":[1,2]} with UTF-8 as it is */
    TY_JSON_SPACED = 1,                              /* {"a": [1, 2]} */
    TY_JSON_ASCII = 2,                               /* what is not ASCII becomes \uXXXX */
    TY_JSON_SORTED = 4,                              /* keys in order of their code points (trees only) */
    TY_JSON_PYTHON = TY_JSON_SPACED | TY_JSON_ASCII, /* byte for byte json.dumps(x) */
};

/* Appends a tree. Integers beyond int64 keep their digits. */
int ty_json_add_doc(ty_buf *out, const ty_doc *d, int style);
/* Appends a string with quotes and escapes as Python's: \" \\ \n \r \t \b \f, other controls \u00XX. Bytes that are no
 * UTF-8 become U+FFFD. */
int ty_json_add_string(ty_buf *out, const char *s, int style);
/* Appends the shortest decimal that reads back to the same double, as Python's repr: 1.0, 0.001, 1e-05, 1e+16. What is
 * not finite: NaN, Infinity, -Infinity (as Python does; strict readers refuse it, so decide before you call). */
int ty_json_add_float(ty_buf *out, double value);
/* The same for float: the shortest that reads back to the same float. */
int ty_json_add_float32(ty_buf *out, float value);

/* Writes JSON piece by piece; commas and colons come by themselves.
 *
 *     ty_json_writer w;
 *     ty_json_writer_init(&w, &buf, TY_JSON_COMPACT);
 *     ty_json_open_map(&w, NULL);
 *     ty_json_put_int(&w, "step", 3);
 *     ty_json_open_list(&w, "shape");
 *     ty_json_put_int(&w, NULL, 64);
 *     ty_json_close(&w);
 *     ty_json_close(&w);                 // {"step":3,"shape":[64]}
 *     if (buf.failed) ...
 *
 * `key` is NULL in lists and at the top. Failures (size, deeper than 32) stick to the buffer: check once at the end. */
typedef struct ty_json_writer {
    ty_buf *out;
    int style;
    int depth;
    uint32_t is_map;   /* bit d: level d is a map */
    uint32_t has_item; /* bit d: level d holds something already */
} ty_json_writer;

void ty_json_writer_init(ty_json_writer *w, ty_buf *out, int style);
void ty_json_open_map(ty_json_writer *w, const char *key);
void ty_json_open_list(ty_json_writer *w, const char *key);
void ty_json_close(ty_json_writer *w);
void ty_json_put_string(ty_json_writer *w, const char *key, const char *value); /* NULL writes null */
void ty_json_put_int(ty_json_writer *w, const char *key, int64_t value);
void ty_json_put_float(ty_json_writer *w, const char *key, double value);  /* not finite: null */
void ty_json_put_float32(ty_json_writer *w, const char *key, float value); /* not finite: null */
void ty_json_put_bool(ty_json_writer *w, const char *key, bool value);
void ty_json_put_null(ty_json_writer *w, const char *key);
void ty_json_put_doc(ty_json_writer *w, const char *key, const ty_doc *value);
/* Bytes that are JSON already. */
void ty_json_put_raw(ty_json_writer *w, const char *key, const char *json);

#endif
