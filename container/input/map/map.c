/* map.c - a declaration checked, and a sample on its way through the steps. */
#include "container/input/convert.h"
#include "container/input/header.h"
#include "container/input/map/fingerprint.h"
#include "container/input/map/kind.h"
#include "container/input/number.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAP_BLOCK = 256 }; /* values on the stack */

#define MAP_MOST_PAD ((int64_t)1 << 53) /* doubles hold all whole numbers up to there */

static const map_kind *const map_kinds[TY_N_MAP_WAYS] = {
    [TY_MAP_NUMBER] = &map_number,         [TY_MAP_BUCKETS] = &map_buckets, [TY_MAP_HASH] = &map_hash,
    [TY_MAP_VOCABULARY] = &map_vocabulary, [TY_MAP_CLASSES] = &map_classes, [TY_MAP_CROSS] = &map_crossed,
    [TY_MAP_TOKENIZER] = &map_tokenizer,   [TY_MAP_LENGTH] = &map_length,   [TY_MAP_TAGS] = &map_tags,
    [TY_MAP_ANSWER] = &map_answer,
};

/* ---- the declaration ---- */

static int map_check_numbers(const ty_map_spec *d, bool wants_text, ty_error *err)
{
    bool made = d->scale != 1 || d->offset != 0 || d->is_clipped || d->log1p || d->normalize;
    if (d->normalize && d->way != TY_MAP_NUMBER)
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": ids cannot be normalized", d->field);
    if (made && (wants_text || d->way == TY_MAP_CROSS))
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": scale, offset, clip and log1p are for numbers, not for %s",
                            d->field, map_kinds[d->way]->name);
    if (!isfinite(d->scale) || d->scale == 0 || !isfinite(d->offset))
        return ty_error_set(err, TY_E_RANGE, "field \"%s\": scale %g and offset %g must be finite, scale not 0",
                            d->field, d->scale, d->offset);
    if (d->is_clipped && !(d->low <= d->high))
        return ty_error_set(err, TY_E_RANGE, "field \"%s\": clip: [%g, %g] leaves nothing", d->field, d->low, d->high);
    if (d->normalize == TY_NORMALIZE_GIVEN && !(isfinite(d->mean) && isfinite(d->deviation) && d->deviation > 0))
        return ty_error_set(err, TY_E_RANGE, "field \"%s\": normalize needs a finite mean and a std above 0", d->field);
    return 0;
}

static int map_check_missing(const ty_map_spec *d, bool wants_text, ty_error *err)
{
    bool of_numbers =
        d->missing == TY_MISSING_NUMBER || d->missing == TY_MISSING_MEAN || d->missing == TY_MISSING_MEDIAN;
    if (d->missing == TY_MISSING_REFUSED)
        return 0;
    if (d->way == TY_MAP_CROSS)
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": a cross has no missing values; its fields may", d->field);
    if (of_numbers && wants_text)
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": expected a text or most_frequent for missing values",
                            d->field);
    if (d->missing == TY_MISSING_TEXT && !wants_text)
        return ty_error_set(
            err, TY_E_CONFIG,
            "field \"%s\": expected a number, mean, median or most_frequent for missing values, found \"%s\"", d->field,
            d->missing_text);
    if (d->missing == TY_MISSING_MOST_FREQUENT && wants_text &&
        ((d->way != TY_MAP_VOCABULARY && d->way != TY_MAP_CLASSES) || d->word))
        return ty_error_set(err, TY_E_CONFIG,
                            "field \"%s\": the most frequent text is known of vocabularies that are "
                            "learnt alone: say missing: TEXT",
                            d->field);
    return 0;
}

static int map_check_ids(const ty_map_spec *d, ty_error *err)
{
    bool hashes = d->way == TY_MAP_HASH || d->way == TY_MAP_CROSS;
    if (hashes && (d->bins < 1))
        return ty_error_set(err, TY_E_RANGE, "field \"%s\": hash: %lld, expected 1 or more", d->field,
                            (long long)d->bins);
    if (d->way == TY_MAP_CROSS && (d->n_cross < 2 || d->n_cross > 64))
        return ty_error_set(err, TY_E_RANGE, "field \"%s\": a cross takes 2 to 64 fields, found %d", d->field,
                            d->n_cross);
    if (d->way == TY_MAP_BUCKETS && d->n_boundaries == 0 && d->n_quantiles < 2)
        return ty_error_set(err, TY_E_RANGE, "field \"%s\": buckets need a boundary, or 2 or more quantiles", d->field);
    if (d->way == TY_MAP_VOCABULARY && d->n_oov == 0 && (d->max_size > 0 || d->min_count > 1))
        return ty_error_set(err, TY_E_CONFIG,
                            "field \"%s\": max_size and min_count leave words out, which need ids: "
                            "oov: 1 or more",
                            d->field);
    if (d->n_quantiles > 1 << 16 || d->n_oov < 0 || d->n_oov > 1 << 24 || d->max_size < 0 || d->min_count < 0)
        return ty_error_set(err, TY_E_RANGE, "field \"%s\": a size is out of range", d->field);
    if (d->one_hot < 0 && d->way == TY_MAP_NUMBER)
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": how many ids there are is not known: say one_hot: N",
                            d->field);
    if (d->one_hot > 1 << 24)
        return ty_error_set(err, TY_E_RANGE, "field \"%s\": one_hot: %lld is too wide", d->field,
                            (long long)d->one_hot);
    return 0;
}

static int map_check_lists(const ty_map_spec *d, const map_kind *kind, ty_error *err)
{
    if (d->split && !kind->wants_text)
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": split is for texts", d->field);
    if ((d->split || kind->is_list) && d->max_length == 0 && !d->one_row)
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": texts become lists of any length: say max_length: N",
                            d->field);
    if (d->max_length < 0 || d->max_length > (int64_t)1 << 26)
        return ty_error_set(err, TY_E_RANGE, "field \"%s\": max_length: %lld is out of range", d->field,
                            (long long)d->max_length);
    if (d->way == TY_MAP_CROSS && d->max_length > 0)
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": a cross has one id", d->field);
    if (d->parts && !kind->row_ids)
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": pair and words go with a tokenizer", d->field);
    if (d->one_row && d->one_hot == 0)
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": one row of what? say multi_hot: N", d->field);
    return 0;
}

static const char *const *map_copy_names(ty_arena *a, const char *const *names, int64_t n)
{
    const char **copy = TY_NEW_ARRAY(a, const char *, n + 1);
    for (int64_t i = 0; names && i < n; i++)
        copy[i] = ty_arena_strdup(a, names[i]);
    return names ? copy : NULL;
}

static bool map_learns(const ty_map *m)
{
    const ty_map_spec *d = &m->d;
    bool words = (d->way == TY_MAP_VOCABULARY || d->way == TY_MAP_CLASSES || d->way == TY_MAP_TAGS) && !d->word;
    return words || d->normalize == TY_NORMALIZE_STANDARD || d->normalize == TY_NORMALIZE_MINMAX ||
           d->n_quantiles > 0 || d->missing >= TY_MISSING_MEAN;
}

int ty_map_new(const ty_map_spec *spec, ty_arena *a, ty_map **out, ty_error *err)
{
    const map_kind *kind = spec->way >= 0 && spec->way < TY_N_MAP_WAYS ? map_kinds[spec->way] : NULL;
    if (!kind)
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": no such transform", spec->field);
    if (map_check_numbers(spec, kind->wants_text, err) < 0 || map_check_missing(spec, kind->wants_text, err) < 0 ||
        map_check_ids(spec, err) < 0 || map_check_lists(spec, kind, err) < 0)
        return -1;
    ty_map *m = TY_NEW(a, ty_map);
    *m = (ty_map){.d = *spec, .kind = kind, .arena = a};
    ty_map_spec *d = &m->d;
    d->field = ty_arena_strdup(a, spec->field);
    d->missing_text = spec->missing_text ? ty_arena_strdup(a, spec->missing_text) : NULL;
    d->tokenizer = spec->tokenizer ? ty_arena_strdup(a, spec->tokenizer) : NULL;
    d->word = map_copy_names(a, spec->word, spec->n_words);
    d->cross = map_copy_names(a, spec->cross, spec->n_cross);
    if (d->missing == TY_MISSING_TEXT)
        m->fill_text = (ty_text){d->missing_text, strlen(d->missing_text)};
    if (kind->prepare && kind->prepare(m, err) < 0)
        return -1;
    m->is_settled = !map_learns(m);
    *out = m;
    return 0;
}

const ty_map_spec *ty_map_declared(const ty_map *m)
{
    return &m->d;
}

bool ty_map_wants_text(const ty_map *m)
{
    return m->kind->wants_text;
}

bool ty_map_is_settled(const ty_map *m)
{
    return m->is_settled;
}

/* ---- cells ---- */

const char *map_show(ty_text text, char out[64])
{
    snprintf(out, 64, "%.*s%s", text.n < 40 ? (int)text.n : 40, text.p, text.n > 40 ? "..." : "");
    return out;
}

bool map_is_missing_text(ty_text text)
{
    return text.p == NULL;
}

bool ty_cells_text(const ty_cells *cells, int64_t i, char room[32], ty_text *out)
{
    if (cells->kind == TY_CELLS_TEXTS) {
        *out = cells->u.text[i];
        return true;
    }
    if (cells->kind == TY_CELLS_NUMBERS && isnan(cells->u.number[i])) {
        *out = (ty_text){NULL, 0};
        return true;
    }
    double v = cells->kind == TY_CELLS_NUMBERS ? cells->u.number[i] : 0;
    if (cells->kind == TY_CELLS_NUMBERS && (v != floor(v) || fabs(v) >= 0x1p63))
        return false;
    int64_t whole = cells->kind == TY_CELLS_INTEGERS ? cells->u.integer[i] : (int64_t)v;
    *out = (ty_text){room, (size_t)snprintf(room, 32, "%lld", (long long)whole)};
    return true;
}

static bool map_cell_number(const ty_cells *cells, int64_t i, double *out)
{
    if (cells->kind != TY_CELLS_TEXTS) {
        *out = cells->kind == TY_CELLS_NUMBERS ? cells->u.number[i] : (double)cells->u.integer[i];
        return true;
    }
    ty_text t = cells->u.text[i];
    while (t.n > 0 && isspace((unsigned char)*t.p))
        t.p++, t.n--;
    while (t.n > 0 && isspace((unsigned char)t.p[t.n - 1]))
        t.n--;
    *out = NAN;
    return !t.p || ty_csv_is_missing(NULL, t.p, t.n) || ty_number_scan(t.p, t.p + t.n, out) == t.p + t.n;
}

bool map_next_piece(const ty_map *m, ty_text *rest, ty_text *out)
{
    if (!rest->p)
        return false;
    *out = *rest;
    const char *at = m->d.split ? memchr(rest->p, m->d.split, rest->n) : NULL;
    if (!at) {
        rest->p = NULL;
        return true;
    }
    out->n = (size_t)(at - rest->p);
    *rest = (ty_text){at + 1, rest->n - out->n - 1};
    return true;
}

double map_make_number(const ty_map *m, double v)
{
    const ty_map_spec *d = &m->d;
    v = d->scale != 1 || d->offset != 0 ? v * d->scale + d->offset : v;
    if (d->is_clipped)
        v = v < d->low ? d->low : v > d->high ? d->high : v;
    return d->log1p ? log1p(v) : v;
}

int map_refuse_missing(const ty_map *m, ty_error *err)
{
    ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": a value is missing", m->d.field);
    return ty_error_help(err, "say what stands for it: missing: %s",
                         m->kind->wants_text ? "a text, or most_frequent" : "a number, mean, median or most_frequent");
}

/* ---- the row ---- */

int64_t ty_map_n_seen(const ty_map *m)
{
    return m->n_seen;
}

int64_t ty_map_n_cells(const ty_map *m)
{
    return m->n_cells > 0 ? m->n_cells : 1;
}

int64_t ty_map_n_ids(const ty_map *m)
{
    return m->kind->n_ids && m->d.one_hot == 0 ? m->kind->n_ids(m) : 0;
}

static int64_t map_width(const ty_map *m)
{
    return m->d.one_hot < 0 ? m->kind->n_ids(m) : m->d.one_hot;
}

const char *ty_map_word(const ty_map *m, int64_t id)
{
    int64_t at = id - (m->d.way == TY_MAP_VOCABULARY ? m->d.n_oov : 0);
    return m->is_settled && m->n_tags == 0 && at >= 0 && at < m->words.n ? m->words.word[at].p : NULL;
}

void ty_map_look(const ty_map *m, ty_map_settled *out)
{
    const ty_map_spec *d = &m->d;
    *out = (ty_map_settled){.n_stats = 1,
                            .boundary = m->boundary,
                            .n_boundaries = m->n_boundaries,
                            .fill_text = m->fill_text.p,
                            .n_words = m->words.n,
                            .width = map_width(m),
                            .is_list = map_has_list(m) || d->split};
    if (d->missing == TY_MISSING_NUMBER) {
        out->fill = &d->missing_number;
        out->n_fill = 1;
    } else if (m->fill) {
        out->fill = m->fill;
        out->n_fill = m->n_stats > 1 ? m->n_stats : 1;
    }
    if (d->normalize == TY_NORMALIZE_GIVEN) {
        out->shift = &d->mean;
        out->divisor = &d->deviation;
    } else if (m->shift) {
        out->n_stats = m->n_stats > 1 ? m->n_stats : 1;
        out->shift = m->shift;
        out->divisor = m->divisor;
    }
}

/* Whether the numbers that fill up rows of ids are such as the type has; rows of tags hold -100 besides. */
static int map_check_pad(const ty_map *m, ty_dtype dtype, ty_error *err)
{
    int64_t min = -MAP_MOST_PAD, max = MAP_MOST_PAD;
    if (!ty_dtype_is_float(dtype))
        ty_integer_range(dtype, &min, &max);
    const double pad[] = {m->d.pad, m->d.way == TY_MAP_TAGS ? MAP_NOT_COUNTED : m->d.pad};
    for (int i = 0; map_row_length(m) > 0 && i < 2; i++)
        if (pad[i] != floor(pad[i]) || pad[i] < (double)min || pad[i] > (double)max ||
            fabs(pad[i]) > (double)MAP_MOST_PAD)
            return ty_error_set(err, TY_E_CONFIG,
                                "field \"%s\": its rows are filled up with %g, which %s does not hold", m->d.field,
                                pad[i], ty_dtype_text(dtype));
    return 0;
}

static int map_check_width(const ty_map *m, ty_dtype dtype, ty_error *err)
{
    int64_t n = m->kind->n_ids ? m->kind->n_ids(m) : 0, min, max;
    if (m->d.one_hot > 0 && n > m->d.one_hot)
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": it has %lld ids, which one_hot: %lld does not hold",
                            m->d.field, (long long)n, (long long)m->d.one_hot);
    if (m->d.one_hot != 0 || n == 0)
        return 0;
    if (map_check_pad(m, dtype, err) < 0)
        return -1;
    if (ty_dtype_is_float(dtype))
        return 0;
    ty_integer_range(dtype, &min, &max);
    if (n - 1 > max)
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": it has %lld ids, which %s does not hold", m->d.field,
                            (long long)n, ty_dtype_text(dtype));
    return 0;
}

int ty_map_type(const ty_map *m, int64_t n_cells, bool dtype_given, ty_dtype dtype, int rank, const int64_t *dim,
                ty_type *out, ty_error *err)
{
    bool ids = m->kind->n_ids && m->d.one_hot == 0;
    bool one = m->d.one_row || m->d.in_all || m->d.way == TY_MAP_CROSS || m->d.way == TY_MAP_ANSWER;
    int64_t shape[2], n = map_row_length(m) > 0 ? map_row_length(m) : one ? 1 : n_cells;
    int n_dims = 0;
    dtype = dtype_given ? dtype : ids ? TY_I64 : TY_F32;
    if (m->n_stats > 1 && n_cells != m->n_stats)
        return ty_error_set(err, TY_E_SHAPE, "field \"%s\": %lld values a sample, and its statistics are of %lld",
                            m->d.field, (long long)n_cells, (long long)m->n_stats);
    if (map_check_width(m, dtype, err) < 0)
        return -1;
    if (!m->d.one_row && (map_row_length(m) > 0 || n != 1))
        shape[n_dims++] = n;
    if (m->d.one_hot != 0)
        shape[n_dims++] = map_width(m);
    *out = ty_type_make(dtype, n_dims, shape);
    if (ty_dims_elems_checked(n_dims, shape, ty_dtype_bytes(dtype)) < 0)
        return ty_error_set(err, TY_E_LIMIT, "field \"%s\": a sample is too big", m->d.field);
    if (rank < 0)
        return 0;
    ty_type given = ty_type_make(dtype, rank, dim);
    if (ty_type_elems(&given) != ty_type_elems(out)) {
        char text[160];
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": its shape %s holds %lld values, its transforms make %lld",
                            m->d.field, ty_type_text(&given, text, sizeof text), (long long)ty_type_elems(&given),
                            (long long)ty_type_elems(out));
    }
    *out = given;
    return 0;
}

/* Values on their way: ids, or numbers. */
typedef struct map_row {
    int64_t n, room, n_all; /* there; that fit; that came */
    union {
        double *real;
        int64_t *id;
    } u;
} map_row;

/* stat: which cell of a sample it is. */
static int map_put_number(const ty_map *m, double v, int64_t stat, map_row *row, ty_error *err)
{
    stat = m->n_stats > 1 ? stat : 0;
    if (isnan(v)) {
        if (m->d.missing == TY_MISSING_REFUSED)
            return map_refuse_missing(m, err);
        v = m->d.missing == TY_MISSING_NUMBER ? m->d.missing_number : m->fill[stat];
    }
    v = map_make_number(m, v);
    if (m->kind->number_id)
        row->u.id[row->n++] = m->kind->number_id(m, v);
    else if (m->d.normalize == TY_NORMALIZE_GIVEN)
        row->u.real[row->n++] = (v - m->d.mean) / m->d.deviation;
    else
        row->u.real[row->n++] = m->shift ? (v - m->shift[stat]) / m->divisor[stat] : v;
    return 0;
}

int map_take_number(const ty_map *m, const ty_cells *cells, int64_t i, double *out, ty_error *err)
{
    char shown[64];
    if (map_cell_number(cells, i, out))
        return 0;
    return ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": expected a number, found \"%s\"", m->d.field,
                        map_show(cells->u.text[i], shown));
}

static int map_put_numbers(const ty_map *m, const ty_cells *cells, map_row *row, ty_error *err)
{
    int64_t first = m->d.left && cells->n > row->room ? cells->n - row->room : 0;
    double v;
    row->n_all = cells->n;
    for (int64_t i = first; i < cells->n && row->n < row->room; i++)
        if (map_take_number(m, cells, i, &v, err) < 0 || map_put_number(m, v, i, row, err) < 0)
            return -1;
    return 0;
}

static int map_put_text(const ty_map *m, ty_text text, map_row *row, ty_error *err)
{
    if (map_is_missing_text(text)) {
        if (m->fill_text.p == NULL)
            return map_refuse_missing(m, err);
        text = m->fill_text;
    }
    int64_t room = row->room - row->n;
    int64_t n = m->kind->text_ids(m, text, row->u.id + row->n, room, err);
    if (n < 0)
        return -1;
    row->n += n < room ? n : room;
    row->n_all += n;
    return 0;
}

int map_take_text(const ty_map *m, const ty_cells *cells, int64_t i, char room[32], ty_text *out, ty_error *err)
{
    if (ty_cells_text(cells, i, room, out))
        return 0;
    return ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": expected a text or a whole number, found %g", m->d.field,
                        cells->u.number[i]);
}

static int map_put_texts(const ty_map *m, const ty_cells *cells, map_row *row, ty_error *err)
{
    char digits[32];
    ty_text text, piece;
    for (int64_t i = 0; i < cells->n; i++) {
        if (map_take_text(m, cells, i, digits, &text, err) < 0)
            return -1;
        if (!text.p && map_put_text(m, text, row, err) < 0)
            return -1;
        while (map_next_piece(m, &text, &piece))
            if (map_put_text(m, piece, row, err) < 0)
                return -1;
    }
    return 0;
}

static int map_put_hot(const ty_map *m, const map_row *row, bool is_id, const ty_type *type, uint8_t *out,
                       ty_error *err)
{
    int64_t width = map_width(m);
    size_t each = ty_dtype_bytes((ty_dtype)type->dtype);
    const double one = 1;
    memset(out, 0, ty_type_bytes(type));
    for (int64_t i = 0; i < row->n; i++) {
        int64_t id = is_id ? row->u.id[i] : (int64_t)row->u.real[i];
        if (id < 0 || id >= width || (!is_id && (double)id != row->u.real[i]))
            return ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": expected 0 to %lld for one_hot, found %g",
                                m->d.field, (long long)width - 1, is_id ? (double)id : row->u.real[i]);
        int64_t at = (m->d.one_row ? 0 : i * width) + id;
        ty_convert_from_f64((ty_dtype)type->dtype, &one, out + (size_t)at * each, 1);
    }
    return 0;
}

/* The row's end, or its beginning, is filled up. */
static void map_pad(const ty_map *m, map_row *row, bool is_id)
{
    int64_t more = row->room - row->n, at = m->d.left ? 0 : row->n;
    if (m->d.left)
        memmove(row->u.id + more, row->u.id, (size_t)row->n * 8); /* both are of 8 bytes */
    for (int64_t i = at; i < at + more; i++)
        if (is_id)
            row->u.id[i] = (int64_t)m->d.pad;
        else
            row->u.real[i] = m->d.pad;
    row->n = row->room;
}

static int map_finish(const ty_map *m, map_row *row, const ty_type *type, void *out, ty_error *err)
{
    bool is_id = m->kind->n_ids != NULL;
    ty_dtype dtype = (ty_dtype)type->dtype;
    if (map_row_length(m) == 0 && !m->d.one_row && (row->n_all != row->room || row->n != row->room)) {
        ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": expected %lld values, found %lld", m->d.field,
                     (long long)row->room, (long long)row->n_all);
        return ty_error_help(err, "max_length: N fills up short ones and cuts long ones");
    }
    if (map_row_length(m) > 0 && row->n < row->room)
        map_pad(m, row, is_id);
    if (m->d.one_hot != 0)
        return map_put_hot(m, row, is_id, type, out, err);
    if (is_id) {
        ty_dtype_is_integer(dtype) ? ty_convert_from_i64(dtype, row->u.id, out, row->n)
                                   : ty_convert_scaled(TY_I64, row->u.id, dtype, out, row->n, 1, 0);
        return 0;
    }
    for (int64_t i = 0; ty_dtype_is_integer(dtype) && i < row->n; i++)
        if (row->u.real[i] != floor(row->u.real[i]))
            return ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": expected a whole number, found %.17g", m->d.field,
                                row->u.real[i]);
    ty_convert_from_f64(dtype, row->u.real, out, row->n);
    return 0;
}

/* A sample without the field is one whose cells are all missing; a list without cells is an empty one. */
static int map_put_absent(const ty_map *m, map_row *row, ty_error *err)
{
    for (int64_t i = 0; i < row->room && !map_has_list(m); i++)
        if ((m->kind->wants_text ? map_put_text(m, (ty_text){NULL, 0}, row, err)
                                 : map_put_number(m, NAN, i, row, err)) < 0)
            return -1;
    row->n_all = row->n;
    return 0;
}

static int map_put_cells(const ty_map *m, const ty_cells *cells, map_row *row, ty_error *err)
{
    row->n = row->n_all = 0;
    bool is_pair = m->d.way == TY_MAP_TOKENIZER && m->d.parts; /* of which no text may be left out */
    if (cells->n == 0 && !is_pair && (map_has_list(m) || !m->kind->row_ids))
        return map_put_absent(m, row, err);
    if (m->kind->row_ids) {
        row->n = row->n_all = m->kind->row_ids(m, cells, row->u.id, row->room, err);
        return row->n < 0 ? -1 : 0;
    }
    return m->kind->wants_text ? map_put_texts(m, cells, row, err) : map_put_numbers(m, cells, row, err);
}

/* Values that a sample with n_cells may have. */
static int64_t map_room(const ty_map *m, int64_t n_cells, int64_t elems)
{
    if (m->d.in_all)
        return n_cells;
    return map_row_length(m) > 0 ? map_row_length(m)
           : m->d.one_row        ? (m->d.split || n_cells > MAP_BLOCK ? n_cells + 4096 : MAP_BLOCK)
           : m->d.one_hot != 0   ? elems / map_width(m)
                                 : elems;
}

/* Measures of texts become their sum. */
static void map_add_up(map_row *row)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < row->n; i++)
        sum += row->u.id[i];
    row->u.id[0] = sum;
    row->n = row->n_all = row->room = 1;
}

/* Pieces of a text that is cut at its beginning: all of them are needed, to keep the last ones. */
static int map_put_longer(const ty_map *m, const ty_cells *cells, map_row *row, ty_error *err)
{
    map_row all = {.room = row->n_all, .u.id = malloc((size_t)row->n_all * 8)};
    if (!all.u.id)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %lld pieces of a text", (long long)row->n_all);
    int rc = map_put_cells(m, cells, &all, err);
    if (rc == 0)
        memcpy(row->u.id, all.u.id + (all.n - row->room), (size_t)row->room * 8);
    free(all.u.id);
    return rc;
}

int ty_map_put(const ty_map *m, const ty_cells *cells, const ty_type *type, void *out, ty_error *err)
{
    int64_t block[MAP_BLOCK], room = map_room(m, cells->n, ty_type_elems(type));
    map_row row = {.room = room, .u.id = block};
    if (room > MAP_BLOCK && !(row.u.id = malloc((size_t)room * 8)))
        return ty_error_set(err, TY_E_LIMIT, "no memory for %lld values of a sample", (long long)room);
    int rc = map_put_cells(m, cells, &row, err);
    if (rc == 0 && m->d.one_row && row.n_all > row.n)
        rc = ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": %lld texts in one row are too many", m->d.field,
                          (long long)row.n_all);
    if (rc == 0 && m->d.left && m->kind->wants_text && row.n_all > room)
        rc = map_put_longer(m, cells, &row, err);
    if (rc == 0 && m->d.in_all)
        map_add_up(&row);
    if (rc == 0)
        rc = map_finish(m, &row, type, out, err);
    if (row.u.id != block)
        free(row.u.id);
    return rc;
}

int ty_map_cross(const ty_map *m, const int64_t *cells, const ty_type *type, void *out, ty_error *err)
{
    uint64_t h = TY_FINGERPRINT_START;
    for (int i = 0; i < m->d.n_cross; i++)
        h = ty_fingerprint_join(h, (uint64_t)cells[i]);
    int64_t id = (int64_t)(h % (uint64_t)m->d.bins);
    map_row row = {.n = 1, .room = 1, .n_all = 1, .u.id = &id};
    return map_finish(m, &row, type, out, err);
}
