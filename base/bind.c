/* bind.c - a table, a map, a struct. */
#include "base/bind.h"

#include "base/suggest.h"
#include "base/yaml.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool has_limits(const ty_bind_row *row)
{
    return row->min != 0 || row->max != 0;
}

/* "an integer from 1 to 64", "a number above 0": what a value of this row must be. */
static void describe_range(const ty_bind_row *row, char *out, size_t n)
{
    const char *noun = row->type == TY_BIND_INT ? "an integer" : "a number";
    const char *from = row->above_min ? "above" : "of at least";
    if (isinf(row->min))
        snprintf(out, n, "%s of at most %.10g", noun, row->max);
    else if (isinf(row->max) || row->max >= 0x1p62)
        snprintf(out, n, "%s %s %.10g", noun, from, row->min);
    else if (row->above_min)
        snprintf(out, n, "%s above %.10g, at most %.10g", noun, row->min, row->max);
    else
        snprintf(out, n, "%s from %.10g to %.10g", noun, row->min, row->max);
}

static int check_range(const ty_bind_row *row, const ty_doc *d, double value, ty_error *err)
{
    bool inside = row->above_min ? value > row->min : value >= row->min;
    if (!has_limits(row) || (inside && value <= row->max))
        return 0;
    char expected[128];
    describe_range(row, expected, sizeof expected);
    return ty_doc_error(d, err, TY_E_RANGE, NULL, "key \"%s\": expected %s, found %s", row->key, expected, d->raw);
}

static void list_choices(const ty_bind_row *row, char *out, size_t n)
{
    size_t len = 0;
    out[0] = 0;
    for (const char *const *choice = row->choices; *choice && len < n; choice++) {
        const char *joint = choice == row->choices ? "" : choice[1] ? ", " : " or ";
        len += (size_t)snprintf(out + len, n - len, "%s%s", joint, *choice);
    }
}

static int store_choice(const ty_bind_row *row, const ty_doc *d, int *field, ty_error *err)
{
    bool is_scalar = d->kind != TY_DOC_LIST && d->kind != TY_DOC_MAP;
    ty_suggestion s = {.word = d->raw};
    for (int i = 0; is_scalar && row->choices[i]; i++) {
        if (strcmp(row->choices[i], d->raw) == 0) {
            *field = i;
            return 0;
        }
        ty_suggest_offer(&s, row->choices[i]);
    }
    char expected[512], found[160], note[128];
    list_choices(row, expected, sizeof expected);
    snprintf(note, sizeof note, "did you mean \"%s\"?", s.best ? s.best : "");
    return ty_doc_error(d, err, is_scalar ? TY_E_RANGE : TY_E_TYPE, s.best ? note : NULL,
                        "key \"%s\": expected %s, found %s", row->key, expected,
                        ty_doc_describe(d, found, sizeof found));
}

static int store_float(const ty_bind_row *row, const ty_doc *d, double *field, ty_error *err)
{
    double value;
    if (ty_doc_float(d, &value, err) < 0 || check_range(row, d, value, err) < 0)
        return -1;
    *field = value;
    return 0;
}

static int store_int(const ty_bind_row *row, const ty_doc *d, int64_t *field, ty_error *err)
{
    int64_t value;
    if (ty_doc_int(d, &value, err) < 0 || check_range(row, d, (double)value, err) < 0)
        return -1;
    *field = value;
    return 0;
}

static int store(const ty_bind_row *row, const ty_doc *d, void *out, ty_error *err)
{
    void *field = (char *)out + row->offset;
    switch (row->type) {
    case TY_BIND_BOOL:
        return ty_doc_bool(d, field, err);
    case TY_BIND_INT:
        return store_int(row, d, field, err);
    case TY_BIND_FLOAT:
        return store_float(row, d, field, err);
    case TY_BIND_STRING:
        return ty_doc_string(d, field, err);
    case TY_BIND_CHOICE:
        return store_choice(row, d, field, err);
    case TY_BIND_NODE:
        memcpy(field, &d, sizeof d);
        return 0;
    }
    return ty_error_set(err, TY_E_INTERNAL, "key \"%s\": its table row has no type", row->key);
}

static void store_zero(const ty_bind_row *row, void *out)
{
    static const size_t sizes[] = {
        [TY_BIND_BOOL] = sizeof(bool),    [TY_BIND_INT] = sizeof(int64_t),
        [TY_BIND_FLOAT] = sizeof(double), [TY_BIND_STRING] = sizeof(const char *),
        [TY_BIND_CHOICE] = sizeof(int),   [TY_BIND_NODE] = sizeof(const ty_doc *),
    };
    memset((char *)out + row->offset, 0, sizes[row->type]);
}

static int store_fallback(const ty_bind_row *row, void *out, ty_error *err)
{
    store_zero(row, out);
    if (!row->fallback || row->type == TY_BIND_NODE)
        return 0;
    const ty_doc_source source = {.name = "default", .text = row->fallback, .is_override = true};
    ty_doc d = {.raw = row->fallback, .source = &source, .key = row->key};
    if (row->type == TY_BIND_STRING) {
        d.kind = TY_DOC_STRING;
        d.string = d.raw;
    } else {
        ty_yaml_resolve(&d);
    }
    return store(row, &d, out, err) < 0 ? ty_error_wrap(err, "default of \"%s\"", row->key) : 0;
}

static int refuse_unknown(const ty_bind_row *rows, size_t n_rows, const char *what, const ty_doc *d, ty_error *err)
{
    ty_suggestion s = {.word = d->key};
    for (size_t i = 0; i < n_rows; i++)
        ty_suggest_offer(&s, rows[i].key);
    char note[160];
    snprintf(note, sizeof note, "did you mean \"%s\"?", s.best ? s.best : "");
    ty_doc_error_key(d, err, TY_E_UNKNOWN_KEY, s.best ? note : NULL, "unknown key \"%s\"%s%s%s", d->key,
                     what[0] ? " in \"" : "", what, what[0] ? "\"" : "");
    if (s.best)
        return -1;
    char known[TY_ERROR_HELP_BYTES - 32] = "";
    for (size_t i = 0, len = 0; i < n_rows && len < sizeof known; i++)
        len += (size_t)snprintf(known + len, sizeof known - len, "%s%s", i ? ", " : "", rows[i].key);
    return ty_error_help(err, "known keys: %s", known);
}

static int refuse_missing(const ty_bind_row *row, const char *what, const ty_doc *map, ty_error *err)
{
    ty_error_set(err, TY_E_MISSING_KEY, "key \"%s\" is missing%s%s%s", row->key, what[0] ? " in \"" : "", what,
                 what[0] ? "\"" : "");
    char place[TY_ERROR_PLACE_BYTES];
    if (map)
        ty_error_at(err, "%s", ty_doc_place(map, place, sizeof place));
    if (row->help)
        ty_error_help(err, "%s: %s", row->key, row->help);
    return -1;
}

static const ty_bind_row *find_row(const ty_bind_row *rows, size_t n_rows, const char *key)
{
    for (size_t i = 0; i < n_rows; i++)
        if (strcmp(rows[i].key, key) == 0)
            return &rows[i];
    return NULL;
}

/* In file order, so that the first fault of the file is the one reported. */
static int check_and_store(const ty_bind_row *rows, size_t n_rows, const char *what, const ty_doc *map, void *out,
                           ty_error *err)
{
    for (size_t i = 0; i < ty_doc_len(map); i++) {
        const ty_doc *d = ty_doc_at(map, i);
        const ty_bind_row *row = find_row(rows, n_rows, d->key);
        if (!row)
            return refuse_unknown(rows, n_rows, what, d, err);
        if (d->kind != TY_DOC_NULL && store(row, d, out, err) < 0)
            return -1;
    }
    return 0;
}

int ty_bind(const ty_bind_row *rows, size_t n_rows, const char *what, const ty_doc *map, void *out,
            const ty_doc **origin, ty_error *err)
{
    if (map && map->kind != TY_DOC_NULL && ty_doc_expect(map, TY_DOC_MAP, err) < 0)
        return -1;
    for (size_t i = 0; i < n_rows; i++)
        if (store_fallback(&rows[i], out, err) < 0)
            return -1;
    if (check_and_store(rows, n_rows, what, map, out, err) < 0)
        return -1;
    for (size_t i = 0; i < n_rows; i++) {
        const ty_doc *d = ty_doc_find(map, rows[i].key);
        if (d && d->kind == TY_DOC_NULL)
            d = NULL;
        if (!d && rows[i].required)
            return refuse_missing(&rows[i], what, map, err);
        if (origin)
            origin[i] = d;
    }
    return 0;
}

const char *ty_bind_origin_text(const ty_doc *origin, char *out, size_t n)
{
    if (!origin)
        snprintf(out, n, "default");
    else if (origin->source->is_override)
        snprintf(out, n, "%s", origin->source->name);
    else
        snprintf(out, n, "%s:%u", origin->source->name, origin->line);
    return out;
}

static void describe_row(const ty_bind_row *row, char *out, size_t n)
{
    static const char *const nouns[] = {
        [TY_BIND_BOOL] = "true or false", [TY_BIND_INT] = "an integer", [TY_BIND_FLOAT] = "a number",
        [TY_BIND_STRING] = "text",        [TY_BIND_CHOICE] = "",        [TY_BIND_NODE] = "a map, list or value",
    };
    if (row->type == TY_BIND_CHOICE)
        list_choices(row, out, n);
    else if (row->form)
        snprintf(out, n, "%s", row->form);
    else if (has_limits(row) && (row->type == TY_BIND_INT || row->type == TY_BIND_FLOAT))
        describe_range(row, out, n);
    else
        snprintf(out, n, "%s", nouns[row->type]);
}

int ty_bind_help(const ty_bind_row *rows, size_t n_rows, int indent, ty_buf *out)
{
    int key_width = 0;
    for (size_t i = 0; i < n_rows; i++)
        key_width = (int)strlen(rows[i].key) > key_width ? (int)strlen(rows[i].key) : key_width;
    for (size_t i = 0; i < n_rows; i++) {
        const ty_bind_row *row = &rows[i];
        char kind[512];
        describe_row(row, kind, sizeof kind);
        ty_buf_addf(out, "%*s%-*s  %s", indent, "", key_width, row->key, row->help ? row->help : "");
        ty_buf_addf(out, "%s%s", row->help ? ": " : "", kind);
        if (row->required)
            ty_buf_adds(out, "; required");
        else if (row->fallback)
            ty_buf_addf(out, "; default %s", row->fallback);
        ty_buf_addc(out, '\n');
    }
    return out->failed ? -1 : 0;
}
