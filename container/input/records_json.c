/* records_json.c - JSON Lines: an object a line, whose numbers are fields by their keys.
 *
 * Source: RFC 8259, jsonlines.org. A value is a number, true or false, or numbers in lists of any nesting, row by row;
 * null is no value. Values that no field names are passed over, whatever they are. The scanner makes no tree: a field
 * is a piece of the line.
 */
#include "container/input/number.h"
#include "container/input/records.h"

#include <math.h>
#include <string.h>

enum { JSON_MAX_DEPTH = 64 };

typedef struct json_text {
    const char *p, *end;
} json_text;

static void json_skip_blanks(json_text *t)
{
    while (t->p < t->end && (*t->p == ' ' || *t->p == '\t' || *t->p == '\r' || *t->p == '\n'))
        t->p++;
}

static bool json_take(json_text *t, char c)
{
    json_skip_blanks(t);
    if (t->p == t->end || *t->p != c)
        return false;
    t->p++;
    return true;
}

/* A string as it stands, without its quotes. */
static bool json_string(json_text *t, const char **s, size_t *n)
{
    if (!json_take(t, '"'))
        return false;
    *s = t->p;
    for (; t->p < t->end && *t->p != '"'; t->p++)
        if (*t->p == '\\' && ++t->p == t->end)
            return false;
    *n = (size_t)(t->p - *s);
    return json_take(t, '"');
}

static bool json_word(json_text *t, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(t->end - t->p) < n || memcmp(t->p, word, n) != 0)
        return false;
    t->p += n;
    return true;
}

static bool json_number(json_text *t, double *out)
{
    const char *after =
        t->p < t->end && (*t->p == '-' || (*t->p >= '0' && *t->p <= '9')) ? ty_number_scan(t->p, t->end, out) : NULL;
    if (!after)
        return false;
    t->p = after;
    return true;
}

/* Passes over one value. Objects and lists are counted, not recursed into. */
static bool json_pass(json_text *t)
{
    char open[JSON_MAX_DEPTH];
    int depth = 0;
    const char *s;
    size_t n;
    double number;
    do {
        json_skip_blanks(t);
        if (t->p == t->end)
            return false;
        char c = *t->p;
        if (c == '{' || c == '[') {
            if (depth == JSON_MAX_DEPTH)
                return false;
            open[depth++] = c == '{' ? '}' : ']';
            t->p++;
        } else if (c == '}' || c == ']') {
            if (depth == 0 || open[--depth] != c)
                return false;
            t->p++;
        } else if (c == ',' || c == ':') {
            if (depth == 0)
                return false;
            t->p++;
        } else if (!(c == '"' ? json_string(t, &s, &n)
                              : json_number(t, &number) || json_word(t, "true") || json_word(t, "false") ||
                                    json_word(t, "null")))
            return false;
    } while (depth > 0);
    return true;
}

/* ---- values ---- */

/* One scalar of numbers. */
static bool json_scalar(json_text *t, double *out, int64_t *whole)
{
    const char *start = t->p;
    *whole = 0;
    if (json_word(t, "true") || json_word(t, "false")) {
        *whole = *start == 't';
        *out = (double)*whole;
        return true;
    }
    if (!json_number(t, out))
        return false;
    if (ty_integer_scan(start, t->end, whole) != t->p)
        *whole = *out == floor(*out) && fabs(*out) < 0x1p63 ? (int64_t)*out : INT64_MIN;
    return true;
}

/* Numbers of a value, row by row, up to max into out (floats or int64_t, by dtype); returns how many, or -1. */
static int64_t json_numbers(json_text t, ty_dtype dtype, void *out, int64_t max)
{
    int depth = 0;
    int64_t n = 0, whole;
    double v;
    bool wants_value = true;
    do {
        json_skip_blanks(&t);
        if (t.p == t.end)
            return -1;
        if (wants_value && *t.p == '[') {
            depth++;
            t.p++;
            json_skip_blanks(&t);
            wants_value = t.p == t.end || *t.p != ']'; /* an empty list */
        } else if (!wants_value && *t.p == ']') {
            depth--;
            t.p++;
        } else if (!wants_value && *t.p == ',') {
            wants_value = true;
            t.p++;
        } else if (wants_value && depth <= JSON_MAX_DEPTH && json_scalar(&t, &v, &whole)) {
            if (dtype == TY_I64 && whole == INT64_MIN)
                return -1;
            if (n < max && dtype == TY_I64)
                ((int64_t *)out)[n] = whole;
            else if (n < max)
                ((float *)out)[n] = (float)v;
            n++;
            wants_value = false;
        } else
            return -1;
    } while (depth > 0);
    return t.p == t.end ? n : -1;
}

/* ---- values of fields with transforms ---- */

static int json_hex(const char *p)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        int c = (unsigned char)p[i], digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
        if (digit < 0 || digit > 15)
            return -1;
        v = v * 16 + digit;
    }
    return v;
}

static char *json_put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        *out++ = (char)c;
        return out;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *out++ = (char)((0xff00 >> (more + 1) & 0xff) | (c >> (6 * more)));
    while (more-- > 0)
        *out++ = (char)(0x80 | ((c >> (6 * more)) & 0x3f));
    return out;
}

/* A string without its escapes, in fewer bytes than it has there. NULL: an escape that is none. */
static char *json_plain(const char *s, size_t n, char *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    for (const char *end = s + n; s < end; s++) {
        if (*s != '\\') {
            *out++ = *s;
            continue;
        }
        const char *simple = strchr(from, *++s);
        if (simple && *s) {
            *out++ = to[simple - from];
            continue;
        }
        int code = *s == 'u' && end - s > 4 ? json_hex(s + 1) : -1;
        s += 4;
        uint32_t c = (uint32_t)code;
        if (code >= 0xd800 && code < 0xdc00 && end - s > 6 && s[1] == '\\' && s[2] == 'u') {
            int low = json_hex(s + 3);
            if (low < 0xdc00 || low > 0xdfff)
                return NULL;
            c = 0x10000 + (((uint32_t)code - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
            s += 6;
        }
        if (code < 0 || (c >= 0xd800 && c < 0xe000))
            return NULL;
        out = json_put_utf8(out, c);
    }
    return out;
}

/* One scalar as a text: a string without quotes and escapes, a number as it is spelled; null is missing. */
static bool json_cell(json_text *t, ty_text *out, char **plain)
{
    const char *s = t->p;
    size_t n;
    double v;
    *out = (ty_text){NULL, 0};
    if (json_word(t, "null"))
        return true;
    if (t->p < t->end && *t->p == '"') {
        char *end = json_string(t, &s, &n) ? json_plain(s, n, *plain) : NULL;
        if (!end)
            return false;
        *out = (ty_text){*plain, (size_t)(end - *plain)};
        *plain = end;
        return true;
    }
    if (!json_number(t, &v) && !json_word(t, "true") && !json_word(t, "false"))
        return false;
    *out = (ty_text){s, (size_t)(t->p - s)};
    return true;
}

/* All scalars of a value, in lists of any nesting. */
static int64_t json_texts(json_text t, ty_text *out, int64_t most, char *plain)
{
    int64_t n = 0;
    int depth = 0;
    do {
        json_skip_blanks(&t);
        if (t.p == t.end)
            return -1;
        if (*t.p == '[' || *t.p == ']') {
            depth += *t.p++ == '[' ? 1 : -1;
        } else if (*t.p == ',' && depth > 0) {
            t.p++;
        } else if (n == most || !json_cell(&t, &out[n++], &plain))
            return -1;
    } while (depth > 0);
    return n;
}

/* The value was passed over as JSON before, so that its brackets and commas are where they belong. true and false count
 * as 1 and 0 where numbers are wanted. */
static int json_cells(records_look *look, const records_cell *c, bool wants_text, ty_cells *out, ty_error *err)
{
    json_text t = {c->u.text.p, c->u.text.end};
    int64_t most = 1;
    for (const char *p = t.p; p < t.end; p++)
        most += *p == ',';
    size_t texts = (size_t)most * sizeof(ty_text), length = (size_t)(t.end - t.p);
    if (records_bytes(look, texts + length + 64, err) < 0)
        return -1;
    ty_text *text = look->stored;
    int64_t n = json_texts(t, text, most, (char *)look->stored + texts);
    if (n < 0)
        return ty_error_set(err, TY_E_DATA_VALUE, "expected a text, a number or a list of these, found %.*s",
                            length < 40 ? (int)length : 40, t.p);
    for (int64_t i = 0; !wants_text && i < n; i++)
        if (text[i].n >= 4 && text[i].p >= t.p && text[i].p < t.end && (*text[i].p == 't' || *text[i].p == 'f'))
            text[i] = (ty_text){*text[i].p == 't' ? "1" : "0", 1};
    *out = (ty_cells){.kind = TY_CELLS_TEXTS, .n = n, .u.text = text};
    return 0;
}

/* ---- records ---- */

static int json_malformed(const ty_frame *record, const json_text *t, ty_error *err)
{
    ty_error_set(err, TY_E_DATA_VALUE, "the line is no JSON object: it is malformed at column %lld",
                 (long long)(t->p - (const char *)record->data) + 1);
    return ty_error_help(err, "each line holds one object: {\"features\": [1, 2.5], \"label\": 0}");
}

static void json_fill(records_look *look, int i, records_cell *c, const char *p, const char *end)
{
    const ty_field *d = &look->impl->field[i].declared;
    bool whole = d->dtype_given && !ty_dtype_is_float(d->dtype) && d->scale == 1.0 && d->offset == 0.0;
    c->is_there = !json_word(&(json_text){p, end}, "null");
    c->dtype = whole ? TY_I64 : TY_F32;
    c->n = -1;
    c->u.text.p = p;
    c->u.text.end = end;
}

void records_json_cell(records_look *look, int i, const char *p, const char *end)
{
    json_fill(look, i, &look->cell[i], p, end);
}

static bool json_is_name(const char *name, const char *key, size_t n)
{
    return name && strlen(name) == n && memcmp(name, key, n) == 0;
}

static void json_keep(records_look *look, const char *key, size_t n, json_text value)
{
    for (int i = records_first(look); i < records_end(look); i++) {
        if (json_is_name(look->impl->names[i], key, n))
            json_fill(look, i, &look->cell[i], value.p, value.end);
        for (int k = 0; k < TY_N_TEXT_PARTS; k++)
            if (json_is_name(look->impl->field[i].also[k], key, n))
                json_fill(look, i, &look->part[i][k], value.p, value.end);
    }
}

/* Whether a name of a field goes on behind this one and a dot. */
static bool json_leads(const char *name, const char *key, size_t n)
{
    return name && strncmp(name, key, n) == 0 && name[n] == '.';
}

static bool json_is_wanted(const records_look *look, const char *key, size_t n)
{
    for (int i = records_first(look); i < records_end(look); i++) {
        if (json_leads(look->impl->names[i], key, n))
            return true;
        for (int k = 0; k < TY_N_TEXT_PARTS; k++)
            if (json_leads(look->impl->field[i].also[k], key, n))
                return true;
    }
    return false;
}

enum { JSON_MAX_NAME = 256 };

/* The members of an object, whose names stand behind the n bytes of `name`; false: it is none. A name that is too long
 * is no field's. */
static bool json_members(records_look *look, json_text *t, char name[JSON_MAX_NAME], size_t n)
{
    const char *key;
    size_t n_key;
    if (!json_take(t, '{'))
        return false;
    if (json_take(t, '}'))
        return true;
    do {
        if (!json_string(t, &key, &n_key) || !json_take(t, ':'))
            return false;
        json_skip_blanks(t);
        json_text value = {t->p, t->p};
        if (!json_pass(t))
            return false;
        value.end = t->p;
        if (n + n_key + 1 >= JSON_MAX_NAME)
            continue;
        memcpy(name + n, key, n_key);
        json_keep(look, name, n + n_key, value);
        bool is_object = value.p < value.end && *value.p == '{';
        if (!is_object || !json_is_wanted(look, name, n + n_key))
            continue;
        name[n + n_key] = '.';
        if (!json_members(look, &value, name, n + n_key + 1))
            return false;
    } while (json_take(t, ','));
    return json_take(t, '}');
}

static int json_find(records_look *look, const ty_frame *record, ty_error *err)
{
    json_text t = {(const char *)record->data, (const char *)record->data + record->n};
    char name[JSON_MAX_NAME];
    for (int i = records_first(look); i < records_end(look); i++) {
        look->cell[i] = (records_cell){.is_there = false};
        memset(look->part[i], 0, sizeof look->part[i]);
    }
    if (!json_members(look, &t, name, 0))
        return json_malformed(record, &t, err);
    json_skip_blanks(&t);
    return t.p == t.end ? 0 : json_malformed(record, &t, err);
}

static int64_t json_count(const records_cell *c)
{
    return json_numbers((json_text){c->u.text.p, c->u.text.end}, c->dtype, NULL, 0);
}

static int64_t json_decode(records_look *look, const records_cell *c, int64_t max)
{
    return json_numbers((json_text){c->u.text.p, c->u.text.end}, c->dtype, look->stored, max);
}

const records_kind records_json = {.framing = TY_FRAMES_LINES,
                                   .is_kept = true,
                                   .finds_parts = true,
                                   .find = json_find,
                                   .count = json_count,
                                   .decode = json_decode,
                                   .cells = json_cells};
