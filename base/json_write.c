/* json_write.c - JSON out: exact escapes, shortest numbers, and a writer that sets the commas. */
#include "base/doc_builder.h"
#include "base/json.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Length of the well-formed UTF-8 character at s (0: none) and its code point. */
static size_t decode(const char *s, uint32_t *code)
{
    unsigned char c = (unsigned char)s[0];
    size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    if (strnlen(s, n) < n || ty_utf8_fault(s, n))
        return 0;
    *code = n == 1 ? c : c & (0xff >> (n + 1));
    for (size_t i = 1; i < n; i++)
        *code = *code << 6 | ((unsigned char)s[i] & 0x3f);
    return n;
}

static void add_code_point(ty_buf *out, const char *s, size_t n, uint32_t code, int style)
{
    static const char short_from[] = "\"\\\n\r\t\b\f", short_to[] = "\"\\nrtbf";
    const char *is_short = code && code < 0x80 ? strchr(short_from, (int)code) : NULL;
    if (is_short)
        ty_buf_addf(out, "\\%c", short_to[is_short - short_from]);
    else if (code < 0x20)
        ty_buf_addf(out, "\\u%04x", code);
    else if (code < 0x7f || !(style & TY_JSON_ASCII)) /* DEL is escaped with the rest, as in Python */
        ty_buf_add(out, s, n);
    else if (code < 0x10000)
        ty_buf_addf(out, "\\u%04x", code);
    else
        ty_buf_addf(out, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
}

int ty_json_add_string(ty_buf *out, const char *s, int style)
{
    ty_buf_addc(out, '"');
    while (*s) {
        size_t plain = 0; /* the common case in one append */
        while ((unsigned char)s[plain] >= 0x20 && (unsigned char)s[plain] < 0x7f && s[plain] != '"' && s[plain] != '\\')
            plain++;
        ty_buf_add(out, s, plain);
        s += plain;
        if (!*s)
            break;
        uint32_t code;
        size_t n = decode(s, &code);
        if (n > 0)
            add_code_point(out, s, n, code, style);
        else
            add_code_point(out, "\xef\xbf\xbd", 3, 0xfffd, style);
        s += n > 0 ? n : 1;
    }
    return ty_buf_addc(out, '"');
}

/* Lays out digits d.ddd x 10^exponent as Python's repr does: plain from 1e-4 to below 1e16. */
static int add_digits(ty_buf *out, bool negative, const char *digits, int exponent)
{
    int n = (int)strlen(digits);
    if (negative)
        ty_buf_addc(out, '-');
    if (exponent < -4 || exponent >= 16) {
        ty_buf_addc(out, digits[0]);
        if (n > 1)
            ty_buf_addf(out, ".%s", digits + 1);
        return ty_buf_addf(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
    }
    if (exponent < 0)
        return ty_buf_addf(out, "0.%.*s%s", -exponent - 1, "000", digits);
    for (int i = 0; i <= exponent; i++)
        ty_buf_addc(out, i < n ? digits[i] : '0');
    return ty_buf_addf(out, ".%s", n > exponent + 1 ? digits + exponent + 1 : "0");
}

/* `text` is from %.*e: [-]d[.ddd]e[+-]dd. Trailing zeros say nothing, because every shorter form was tried or
 * contained. */
static int add_scientific(ty_buf *out, const char *text)
{
    bool negative = text[0] == '-';
    char digits[32];
    size_t n = 0;
    const char *at = text + negative;
    for (; *at != 'e'; at++)
        if (*at != '.')
            digits[n++] = *at;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = 0;
    return add_digits(out, negative, digits, atoi(at + 1));
}

static int add_not_finite(ty_buf *out, double value)
{
    return ty_buf_adds(out, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

int ty_json_add_float(ty_buf *out, double value)
{
    if (!isfinite(value))
        return add_not_finite(out, value);
    char text[40];
    /* 15 digits always survive and 17 always suffice; subnormals have fewer, so there the shortest is sought from 1 up.
     */
    for (int n_digits = fabs(value) < DBL_MIN ? 1 : DBL_DIG; n_digits <= DBL_DECIMAL_DIG; n_digits++) {
        snprintf(text, sizeof text, "%.*e", n_digits - 1, value);
        if (strtod(text, NULL) == value)
            break;
    }
    return add_scientific(out, text);
}

int ty_json_add_float32(ty_buf *out, float value)
{
    if (!isfinite(value))
        return add_not_finite(out, value);
    char text[40];
    for (int n_digits = fabsf(value) < FLT_MIN ? 1 : FLT_DIG; n_digits <= FLT_DECIMAL_DIG; n_digits++) {
        snprintf(text, sizeof text, "%.*e", n_digits - 1, (double)value);
        if (strtof(text, NULL) == value)
            break;
    }
    return add_scientific(out, text);
}

static void add_comma(ty_buf *out, int style)
{
    ty_buf_adds(out, style & TY_JSON_SPACED ? ", " : ",");
}

static void add_key(ty_buf *out, const char *key, int style)
{
    ty_json_add_string(out, key, style);
    ty_buf_adds(out, style & TY_JSON_SPACED ? ": " : ":");
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp((*(const ty_doc *const *)a)->key, (*(const ty_doc *const *)b)->key);
}

/* Bytes of UTF-8 sort as their code points do. */
static void add_sorted_map(ty_buf *out, const ty_doc *map, int style)
{
    const ty_doc **sorted = malloc((map->n_items + 1) * sizeof *sorted);
    if (!sorted) {
        out->failed = true;
        return;
    }
    for (uint32_t i = 0; i < map->n_items; i++)
        sorted[i] = &map->items[i];
    qsort(sorted, map->n_items, sizeof *sorted, compare_keys);
    for (uint32_t i = 0; i < map->n_items; i++) {
        if (i)
            add_comma(out, style);
        add_key(out, sorted[i]->key, style);
        ty_json_add_doc(out, sorted[i], style);
    }
    free(sorted);
}

static void add_container(ty_buf *out, const ty_doc *d, int style)
{
    bool is_map = d->kind == TY_DOC_MAP;
    ty_buf_addc(out, is_map ? '{' : '[');
    if (is_map && style & TY_JSON_SORTED)
        add_sorted_map(out, d, style);
    else
        for (uint32_t i = 0; i < d->n_items; i++) {
            if (i)
                add_comma(out, style);
            if (is_map)
                add_key(out, d->items[i].key, style);
            ty_json_add_doc(out, &d->items[i], style);
        }
    ty_buf_addc(out, is_map ? '}' : ']');
}

/* Integers that no int64 holds are kept as floats, but print as they were written. */
static bool is_long_integer(const char *raw)
{
    raw += *raw == '-';
    return *raw && raw[strspn(raw, "0123456789")] == 0;
}

int ty_json_add_doc(ty_buf *out, const ty_doc *d, int style)
{
    switch (d->kind) {
    case TY_DOC_NULL:
        return ty_buf_adds(out, "null");
    case TY_DOC_BOOL:
        return ty_buf_adds(out, d->boolean ? "true" : "false");
    case TY_DOC_INT:
        return ty_buf_addf(out, "%lld", (long long)d->integer);
    case TY_DOC_FLOAT:
        return is_long_integer(d->raw) ? ty_buf_adds(out, d->raw) : ty_json_add_float(out, d->number);
    case TY_DOC_STRING:
        return ty_json_add_string(out, d->string, style);
    default:
        add_container(out, d, style);
        return out->failed ? -1 : 0;
    }
}

enum { MAX_WRITER_DEPTH = 31 };

void ty_json_writer_init(ty_json_writer *w, ty_buf *out, int style)
{
    *w = (ty_json_writer){.out = out, .style = style};
}

static void begin_item(ty_json_writer *w, const char *key)
{
    uint32_t level = UINT32_C(1) << w->depth;
    if (w->has_item & level)
        add_comma(w->out, w->style);
    w->has_item |= level;
    if (key)
        add_key(w->out, key, w->style);
}

static void open_container(ty_json_writer *w, const char *key, bool is_map)
{
    begin_item(w, key);
    ty_buf_addc(w->out, is_map ? '{' : '[');
    if (w->depth == MAX_WRITER_DEPTH) {
        w->out->failed = true;
        return;
    }
    uint32_t level = UINT32_C(1) << ++w->depth;
    w->has_item &= ~level;
    w->is_map = is_map ? w->is_map | level : w->is_map & ~level;
}

void ty_json_open_map(ty_json_writer *w, const char *key)
{
    open_container(w, key, true);
}

void ty_json_open_list(ty_json_writer *w, const char *key)
{
    open_container(w, key, false);
}

void ty_json_close(ty_json_writer *w)
{
    if (w->depth == 0) {
        w->out->failed = true;
        return;
    }
    ty_buf_addc(w->out, w->is_map & UINT32_C(1) << w->depth ? '}' : ']');
    w->depth--;
}

void ty_json_put_string(ty_json_writer *w, const char *key, const char *value)
{
    if (!value) {
        ty_json_put_null(w, key);
        return;
    }
    begin_item(w, key);
    ty_json_add_string(w->out, value, w->style);
}

void ty_json_put_int(ty_json_writer *w, const char *key, int64_t value)
{
    begin_item(w, key);
    ty_buf_addf(w->out, "%lld", (long long)value);
}

void ty_json_put_float(ty_json_writer *w, const char *key, double value)
{
    if (!isfinite(value)) {
        ty_json_put_null(w, key);
        return;
    }
    begin_item(w, key);
    ty_json_add_float(w->out, value);
}

void ty_json_put_float32(ty_json_writer *w, const char *key, float value)
{
    if (!isfinite(value)) {
        ty_json_put_null(w, key);
        return;
    }
    begin_item(w, key);
    ty_json_add_float32(w->out, value);
}

void ty_json_put_bool(ty_json_writer *w, const char *key, bool value)
{
    ty_json_put_raw(w, key, value ? "true" : "false");
}

void ty_json_put_null(ty_json_writer *w, const char *key)
{
    ty_json_put_raw(w, key, "null");
}

void ty_json_put_raw(ty_json_writer *w, const char *key, const char *json)
{
    begin_item(w, key);
    ty_buf_adds(w->out, json);
}

void ty_json_put_doc(ty_json_writer *w, const char *key, const ty_doc *value)
{
    begin_item(w, key);
    ty_json_add_doc(w->out, value, w->style);
}
