/* python_text.c - CPython's str, repr and json.dumps for the values of value.h.
 *
 * Two walkers share one shape: a leaf printer by kind, then brackets around children. They differ in quoting, in the
 * words for true and null, in separators and in whether keys are sorted; those differences are the style records below.
 */
#include "container/config/python_text.h"

#include "base/json.h"
#include "container/config/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct text_style {
    const char *words[3]; /* null, false, true */
    const char *infinity, *minus_infinity, *nan;
    const char *comma, *colon;
    bool sort_keys;
    int (*string)(ty_buf *out, const char *s, size_t n);
} text_style;

static int text_repr_string(ty_buf *out, const char *s, size_t n);
static int text_json_string(ty_buf *out, const char *s, size_t n);

static const text_style style_repr = {{"None", "False", "True"}, "inf", "-inf", "nan", ", ", ": ", false,
                                      text_repr_string};
static const text_style style_json = {{"null", "false", "true"}, "Infinity", "-Infinity", "NaN", ", ", ": ", false,
                                      text_json_string};
static const text_style style_compact = {{"null", "false", "true"}, "Infinity", "-Infinity", "NaN", ",", ":", true,
                                         text_json_string};

/* ---- numbers ---- */

/* base/json.h spells finite doubles as CPython's repr does. */
int ty_python_float(ty_buf *out, double d)
{
    if (isnan(d))
        return ty_buf_adds(out, "nan");
    if (isinf(d))
        return ty_buf_adds(out, d > 0 ? "inf" : "-inf");
    return ty_json_add_float(out, d);
}

static int text_real(ty_buf *out, double d, const text_style *style)
{
    if (isnan(d))
        return ty_buf_adds(out, style->nan);
    if (isinf(d))
        return ty_buf_adds(out, d > 0 ? style->infinity : style->minus_infinity);
    return ty_python_float(out, d);
}

/* ---- strings ---- */

static bool text_printable(uint32_t cp)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
#define UNPRINTABLE(first, last) {first, last},
#include "container/config/unprintable.def"
#undef UNPRINTABLE
    };
    size_t low = 0, high = sizeof ranges / sizeof ranges[0];

    if (cp < 0x80)
        return cp >= 0x20 && cp != 0x7f;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (cp > ranges[middle].last)
            low = middle + 1;
        else if (cp < ranges[middle].first)
            high = middle;
        else
            return false;
    }
    return true;
}

static int text_repr_string(ty_buf *out, const char *s, size_t n)
{
    char quote = memchr(s, '\'', n) != NULL && memchr(s, '"', n) == NULL ? '"' : '\'';

    ty_buf_addc(out, quote);
    for (size_t at = 0; at < n;) {
        uint32_t cp;
        size_t len = ty_utf8_next(s + at, n - at, &cp);
        if (cp == '\\' || cp == (uint32_t)quote)
            ty_buf_addf(out, "\\%c", (char)cp);
        else if (cp == '\n' || cp == '\r' || cp == '\t')
            ty_buf_adds(out, cp == '\n' ? "\\n" : cp == '\r' ? "\\r" : "\\t");
        else if (text_printable(cp))
            ty_buf_add(out, s + at, len);
        else if (cp < 0x100)
            ty_buf_addf(out, "\\x%02x", cp);
        else
            ty_buf_addf(out, cp < 0x10000 ? "\\u%04x" : "\\U%08x", cp);
        at += len;
    }
    return ty_buf_addc(out, quote);
}

static void text_json_char(ty_buf *out, uint32_t cp)
{
    static const char escapes[][2] = {{'"', '"'},  {'\\', '\\'}, {'\n', 'n'}, {'\r', 'r'},
                                      {'\t', 't'}, {'\b', 'b'},  {'\f', 'f'}};

    for (size_t i = 0; i < sizeof escapes / sizeof escapes[0]; i++)
        if (cp == (uint32_t)escapes[i][0]) {
            ty_buf_addf(out, "\\%c", escapes[i][1]);
            return;
        }
    if (cp >= 0x20 && cp < 0x7f)
        ty_buf_addc(out, (char)cp);
    else if (cp < 0x10000)
        ty_buf_addf(out, "\\u%04x", cp);
    else
        ty_buf_addf(out, "\\u%04x\\u%04x", 0xd800 + ((cp - 0x10000) >> 10), 0xdc00 + ((cp - 0x10000) & 0x3ff));
}

static int text_json_string(ty_buf *out, const char *s, size_t n)
{
    ty_buf_addc(out, '"');
    for (size_t at = 0; at < n;) {
        uint32_t cp;
        at += ty_utf8_next(s + at, n - at, &cp);
        text_json_char(out, cp);
    }
    return ty_buf_addc(out, '"');
}

/* ---- trees ---- */

/* Code-point order, which for UTF-8 is byte order. */
static int text_compare_keys(const ty_value *a, const ty_value *b)
{
    size_t n = a->text_len < b->text_len ? a->text_len : b->text_len;
    int order = memcmp(a->text, b->text, n);

    return order != 0 ? order : (a->text_len > b->text_len) - (a->text_len < b->text_len);
}

static int text_compare_key_pointers(const void *a, const void *b)
{
    return text_compare_keys(*(const ty_value *const *)a, *(const ty_value *const *)b);
}

/* The entries of a dict as pointers into keys[]; the index of an entry is its pointer minus dict->keys. free() it. */
static const ty_value **text_ordered_keys(const ty_value *dict, bool sorted)
{
    const ty_value **order = malloc((dict->n + 1) * sizeof *order);

    if (order == NULL)
        return NULL;
    for (size_t i = 0; i < dict->n; i++)
        order[i] = &dict->keys[i];
    if (sorted)
        qsort(order, dict->n, sizeof *order, text_compare_key_pointers);
    return order;
}

static int text_write(ty_buf *out, const ty_value *v, const text_style *style);

static int text_dict(ty_buf *out, const ty_value *v, const text_style *style)
{
    const ty_value **order = text_ordered_keys(v, style->sort_keys);

    if (order == NULL) {
        out->failed = true;
        return -1;
    }
    ty_buf_addc(out, '{');
    for (size_t i = 0; i < v->n; i++) {
        if (i > 0)
            ty_buf_adds(out, style->comma);
        style->string(out, order[i]->text, order[i]->text_len);
        ty_buf_adds(out, style->colon);
        text_write(out, &v->items[order[i] - v->keys], style);
    }
    free(order);
    return ty_buf_addc(out, '}');
}

static int text_list(ty_buf *out, const ty_value *v, const text_style *style)
{
    ty_buf_addc(out, '[');
    for (size_t i = 0; i < v->n; i++) {
        if (i > 0)
            ty_buf_adds(out, style->comma);
        text_write(out, &v->items[i], style);
    }
    return ty_buf_addc(out, ']');
}

static int text_write(ty_buf *out, const ty_value *v, const text_style *style)
{
    switch (v->kind) {
    case TY_VALUE_NULL:
        return ty_buf_adds(out, style->words[0]);
    case TY_VALUE_BOOL:
        return ty_buf_adds(out, style->words[v->boolean ? 2 : 1]);
    case TY_VALUE_INT:
        return ty_buf_add(out, v->text, v->text_len);
    case TY_VALUE_REAL:
        return text_real(out, v->real, style);
    case TY_VALUE_STRING:
        return style->string(out, v->text, v->text_len);
    case TY_VALUE_LIST:
        return text_list(out, v, style);
    case TY_VALUE_DICT:
        return text_dict(out, v, style);
    }
    return -1;
}

int ty_python_repr(ty_buf *out, const ty_value *v)
{
    text_write(out, v, &style_repr);
    return out->failed ? -1 : 0;
}

int ty_python_json(ty_buf *out, const ty_value *v)
{
    text_write(out, v, &style_json);
    return out->failed ? -1 : 0;
}

int ty_python_json_compact(ty_buf *out, const ty_value *v)
{
    text_write(out, v, &style_compact);
    return out->failed ? -1 : 0;
}

int ty_python_str(ty_buf *out, const ty_value *v)
{
    return v->kind == TY_VALUE_STRING ? ty_buf_add(out, v->text, v->text_len) : ty_python_repr(out, v);
}

int ty_python_environment(ty_buf *out, const ty_value *v)
{
    if (v->kind == TY_VALUE_NULL)
        return 0;
    return v->kind == TY_VALUE_STRING ? ty_buf_add(out, v->text, v->text_len) : ty_python_json_compact(out, v);
}

int ty_python_argument(ty_buf *out, const ty_value *v)
{
    if (v->kind == TY_VALUE_NULL)
        return 0;
    if (v->kind != TY_VALUE_DICT)
        return ty_python_str(out, v);

    const ty_value **order = text_ordered_keys(v, true);
    if (order == NULL) {
        out->failed = true;
        return -1;
    }
    for (size_t i = 0; i < v->n; i++) {
        if (i > 0)
            ty_buf_addc(out, ',');
        ty_buf_add(out, order[i]->text, order[i]->text_len);
        ty_buf_addc(out, '=');
        ty_python_str(out, &v->items[order[i] - v->keys]);
    }
    free(order);
    return out->failed ? -1 : 0;
}
