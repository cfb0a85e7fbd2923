/* field.c - checks of a declaration, and column specifications. */
#include "container/input/field.h"

#include "container/input/convert.h"
#include "container/input/media.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIELD_MAX_COLUMNS (1 << 20)

ty_field ty_field_make(const char *name)
{
    return (ty_field){.name = name, .dtype = TY_F32, .scale = 1.0};
}

static int field_check_scale(const ty_field *f, ty_error *err)
{
    if (!isfinite(f->scale) || !isfinite(f->offset))
        return ty_error_set(err, TY_E_RANGE, "field \"%s\": scale %g and offset %g must be finite", f->name, f->scale,
                            f->offset);
    if (f->scale == 0.0) {
        ty_error_set(err, TY_E_RANGE, "field \"%s\": scale 0 makes every value the same", f->name);
        return ty_error_help(err, "the batch value is stored value * scale + offset; leave scale out for 1");
    }
    if (f->dtype_given && f->dtype == TY_BOOL && (f->scale != 1.0 || f->offset != 0.0))
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": a bool cannot be scaled", f->name);
    return 0;
}

static int field_check_media(const ty_field *f, ty_error *err)
{
    ty_media m = {f->image, f->audio};
    if (f->image && f->audio)
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\" has image: and audio:, and can be one of them", f->name);
    if (f->shape_given || f->max_length > 0 || f->missing_given || f->map || f->scale != 1.0 || f->offset != 0.0) {
        ty_error_set(err, TY_E_CONFIG,
                     "field \"%s\": a %s has no shape, scale, offset, missing, max_length or "
                     "other transform beside its %s:",
                     f->name, ty_media_noun(&m), f->audio ? "audio" : "image");
        return ty_error_help(err, f->audio
                                      ? "audio: {length: N, channels: 1, scale: 1, ...} says them"
                                      : "image: {size: [H, W], channels: 3, scale: 1, mean: ..., std: ...} says them");
    }
    if (ty_media_check(&m, f->dtype_given ? f->dtype : TY_F32, err) < 0)
        return ty_error_wrap(err, "field \"%s\": %s", f->name, f->audio ? "audio" : "image");
    return 0;
}

int ty_field_check(const ty_field *f, ty_error *err)
{
    if (f->name == NULL || f->name[0] == 0)
        return ty_error_set(err, TY_E_CONFIG, "a field has no name");
    if (f->dtype_given && (f->dtype < 0 || f->dtype >= TY_N_DTYPES))
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": unknown element type", f->name);
    if (f->shape_given && (f->rank < 0 || f->rank > TY_SAMPLE_MAX_RANK))
        return ty_error_set(err, TY_E_RANGE, "field \"%s\": a sample has %d dimensions, at most %d are allowed",
                            f->name, f->rank, TY_SAMPLE_MAX_RANK);
    for (int k = 0; f->shape_given && k < f->rank; k++)
        if (f->dim[k] < 1)
            return ty_error_set(err, TY_E_RANGE, "field \"%s\": dimension %d of its shape is %lld, expected 1 or more",
                                f->name, k, (long long)f->dim[k]);
    if (f->shape_given && ty_dims_elems_checked(f->rank, f->dim, 8) < 0)
        return ty_error_set(err, TY_E_RANGE, "field \"%s\": its shape has too many elements", f->name);
    if (f->max_length < 0 || (f->max_length > 0 && f->shape_given))
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": max_length says its shape: give one of them", f->name);
    if ((f->image || f->audio) && field_check_media(f, err) < 0)
        return -1;
    return field_check_scale(f, err);
}

/* One item of a specification, trimmed. */
typedef struct columns_item {
    const char *text;
    size_t n;
} columns_item;

static bool columns_next_item(const char **at, columns_item *out)
{
    const char *p = *at;
    if (p == NULL)
        return false;
    const char *comma = strchr(p, ',');
    const char *end = comma != NULL ? comma : p + strlen(p);
    *at = comma != NULL ? comma + 1 : NULL;
    while (p < end && isspace((unsigned char)*p))
        p++;
    while (end > p && isspace((unsigned char)end[-1]))
        end--;
    *out = (columns_item){p, (size_t)(end - p)};
    return true;
}

/* Reads "-12" or "12" at *p; false when there is no number. Absurd sizes saturate and are refused by the range check.
 */
static bool columns_scan_int(const char **p, const char *end, int64_t *out)
{
    const char *q = *p;
    bool negative = q < end && *q == '-';
    q += negative;
    if (q >= end || !isdigit((unsigned char)*q))
        return false;
    int64_t v = 0;
    for (; q < end && isdigit((unsigned char)*q); q++)
        v = v > INT32_MAX ? v : v * 10 + (*q - '0');
    *out = negative ? -v : v;
    *p = q;
    return true;
}

/* "7" or "0-63" or "-3--1": true with both ends. */
static bool columns_scan_range(columns_item item, int64_t *first, int64_t *last)
{
    const char *p = item.text, *end = item.text + item.n;
    if (!columns_scan_int(&p, end, first))
        return false;
    *last = *first;
    if (p == end)
        return true;
    if (*p++ != '-')
        return false;
    return columns_scan_int(&p, end, last) && p == end;
}

bool ty_columns_need_header(const char *spec)
{
    columns_item item;
    int64_t first, last;
    while (columns_next_item(&spec, &item))
        if (item.n > 0 && !columns_scan_range(item, &first, &last))
            return true;
    return false;
}

static int columns_by_name(columns_item item, const char *const *header, int64_t n_columns, int64_t *out, ty_error *err)
{
    if (header == NULL) {
        ty_error_set(err, TY_E_CONFIG, "column \"%.*s\" is given by name, but the data have no header line",
                     (int)item.n, item.text);
        return ty_error_help(err, "give its number, 0 to %lld, or say header: yes", (long long)n_columns - 1);
    }
    int64_t found = -1;
    for (int64_t i = 0; i < n_columns; i++) {
        if (strlen(header[i]) != item.n || memcmp(header[i], item.text, item.n) != 0)
            continue;
        if (found >= 0)
            return ty_error_set(err, TY_E_CONFIG, "column name \"%s\" stands twice in the header, as %lld and %lld",
                                header[i], (long long)found, (long long)i);
        found = i;
    }
    if (found >= 0) {
        *out = found;
        return 0;
    }
    ty_error_set(err, TY_E_CONFIG, "no column is named \"%.*s\"", (int)item.n, item.text);
    for (int64_t i = 0; i < n_columns && i < 12; i++)
        ty_error_detail(err, "column %lld: \"%s\"", (long long)i, header[i]);
    return ty_error_help(err, "the header has %lld columns", (long long)n_columns);
}

static int columns_resolve_item(columns_item item, const char *const *header, int64_t n_columns, int64_t *first,
                                int64_t *last, ty_error *err)
{
    if (item.n == 0)
        return ty_error_set(err, TY_E_CONFIG, "an item of the column list is empty");
    if (!columns_scan_range(item, first, last)) {
        if (columns_by_name(item, header, n_columns, first, err) < 0)
            return -1;
        *last = *first;
        return 0;
    }
    int64_t *ends[2] = {first, last};
    for (int i = 0; i < 2; i++) {
        int64_t v = *ends[i] < 0 ? *ends[i] + n_columns : *ends[i];
        if (v < 0 || v >= n_columns) {
            ty_error_set(err, TY_E_CONFIG, "column %lld does not exist: the data have %lld columns",
                         (long long)*ends[i], (long long)n_columns);
            return ty_error_help(err, "columns count from 0 to %lld, or from the end: -1 is the last",
                                 (long long)n_columns - 1);
        }
        *ends[i] = v;
    }
    if (*last < *first)
        return ty_error_set(err, TY_E_CONFIG, "column range \"%.*s\" runs backwards", (int)item.n, item.text);
    return 0;
}

int ty_columns_resolve(const char *spec, const char *const *header, int64_t n_columns, ty_arena *arena, int32_t **out,
                       int32_t *n_out, ty_error *err)
{
    int64_t first, last, n = 0;
    columns_item item;
    for (const char *at = spec; columns_next_item(&at, &item);) {
        if (columns_resolve_item(item, header, n_columns, &first, &last, err) < 0)
            return -1;
        n += last - first + 1;
        if (n > FIELD_MAX_COLUMNS)
            return ty_error_set(err, TY_E_LIMIT, "more than %d columns in one field", FIELD_MAX_COLUMNS);
    }
    int32_t *columns = TY_NEW_ARRAY(arena, int32_t, n);
    n = 0;
    for (const char *at = spec; columns_next_item(&at, &item);) {
        if (columns_resolve_item(item, header, n_columns, &first, &last, err) < 0)
            return -1;
        for (int64_t i = first; i <= last; i++)
            columns[n++] = (int32_t)i;
    }
    *out = columns;
    *n_out = (int32_t)n;
    return 0;
}

bool ty_field_needs_header(const ty_field *f)
{
    bool needs = ty_columns_need_header(f->columns ? f->columns : f->name);
    for (int i = 0; i < TY_N_TEXT_PARTS; i++)
        needs = needs || (f->part[i] && ty_columns_need_header(f->part[i]));
    return needs;
}

bool ty_field_has_parts(const ty_field *f)
{
    for (int i = 0; i < TY_N_TEXT_PARTS; i++)
        if (f->part[i])
            return true;
    return false;
}

int ty_field_columns(const ty_field *f, const char *const *header, int64_t n_columns, ty_arena *arena, int32_t **out,
                     int32_t *n_out, int32_t n_part[TY_N_TEXT_PARTS], ty_error *err)
{
    if (ty_columns_resolve(f->columns ? f->columns : f->name, header, n_columns, arena, out, n_out, err) < 0)
        return ty_error_wrap(err, "field \"%s\"", f->name);
    for (int i = 0; i < TY_N_TEXT_PARTS; i++) {
        int32_t *more, *all;
        n_part[i] = 0;
        if (!f->part[i])
            continue;
        if (ty_columns_resolve(f->part[i], header, n_columns, arena, &more, &n_part[i], err) < 0)
            return ty_error_wrap(err, "field \"%s\"", f->name);
        all = TY_NEW_ARRAY(arena, int32_t, *n_out + n_part[i]);
        memcpy(all, *out, (size_t)*n_out * sizeof *all);
        memcpy(all + *n_out, more, (size_t)n_part[i] * sizeof *all);
        *out = all;
        *n_out += n_part[i];
    }
    return 0;
}
