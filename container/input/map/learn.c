/* learn.c - what a map learns of the training data, how ranks share it, and how it is kept. */
#include "base/hash.h"
#include "container/input/map/kind.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEARN_MAX_STATS ((int64_t)1 << 22) /* cells of a sample that have statistics of their own */
#define LEARN_MAX_CELLS ((int64_t)1 << 26) /* of a sample that another rank, or an earlier run, has seen */

static bool learn_raw(const ty_map *m)
{
    return !m->kind->wants_text && m->d.missing >= TY_MISSING_MEAN;
}

static bool learn_made(const ty_map *m)
{
    return m->d.normalize == TY_NORMALIZE_STANDARD || m->d.normalize == TY_NORMALIZE_MINMAX || m->d.n_quantiles > 0;
}

/* ---- checking ---- */

static int check_number(const ty_map *m, double v, bool is_whole, ty_error *err)
{
    bool as_is = m->d.way == TY_MAP_NUMBER && !m->d.normalize;
    if (isnan(v) && m->d.missing == TY_MISSING_REFUSED)
        return map_refuse_missing(m, err);
    if (isnan(v))
        return 0;
    if (!isfinite(v))
        return ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": %g has no place in statistics", m->d.field, v);
    v = map_make_number(m, v);
    if (isnan(v) && learn_made(m))
        return ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": log1p of a number below -1", m->d.field);
    if (as_is && (is_whole || m->d.one_hot > 0) && v != floor(v))
        return ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": expected a whole number, found %.17g", m->d.field, v);
    if (as_is && m->d.one_hot > 0 && (v < 0 || v >= (double)m->d.one_hot))
        return ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": expected 0 to %lld for one_hot, found %g", m->d.field,
                            (long long)m->d.one_hot - 1, v);
    return 0;
}

static int check_text(const ty_map *m, ty_text text, bool is_learnt, ty_error *err)
{
    if (!map_is_missing_text(text))
        return m->kind->see_text && is_learnt ? map_words_check(text, err) : 0;
    return m->d.missing == TY_MISSING_MOST_FREQUENT || m->d.missing == TY_MISSING_TEXT ? 0 : map_refuse_missing(m, err);
}

static int check_cell(const ty_map *m, const ty_cells *cells, int64_t i, bool is_whole, ty_error *err)
{
    char digits[32];
    double v;
    ty_text text, piece;
    if (!m->kind->wants_text)
        return map_take_number(m, cells, i, &v, err) < 0 ? -1 : check_number(m, v, is_whole, err);
    if (map_take_text(m, cells, i, digits, &text, err) < 0)
        return -1;
    bool is_learnt = i < ty_cells_own(cells);
    if (!text.p)
        return check_text(m, text, is_learnt, err);
    while (map_next_piece(m, &text, &piece))
        if (check_text(m, piece, is_learnt, err) < 0)
            return -1;
    return 0;
}

static int check_length(const ty_map *m, int64_t n, ty_error *err)
{
    ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": expected %lld values, found %lld", m->d.field,
                 (long long)m->n_cells, (long long)n);
    return ty_error_help(err, "max_length: N fills up short ones and cuts long ones");
}

int ty_map_check(const ty_map *m, const ty_cells *cells, bool is_whole, ty_error *err)
{
    if (cells->n == 0 && !map_has_list(m) && m->d.missing == TY_MISSING_REFUSED)
        return map_refuse_missing(m, err);
    if (cells->n > 0 && m->n_cells > 0 && cells->n != m->n_cells && !map_has_list(m))
        return check_length(m, cells->n, err);
    for (int64_t i = 0; i < cells->n; i++)
        if (check_cell(m, cells, i, is_whole, err) < 0)
            return -1;
    return m->kind->fits ? m->kind->fits(m, cells, err) : 0;
}

/* ---- seeing ---- */

static int learn_begin(ty_map *m, int64_t n_cells, ty_error *err)
{
    bool together = map_has_list(m) || m->kind->number_id;
    m->n_cells = n_cells;
    m->n_stats = together || m->kind->wants_text ? 1 : n_cells;
    if (m->n_stats > LEARN_MAX_STATS)
        return ty_error_set(err, TY_E_LIMIT, "field \"%s\": %lld values a sample are too many for statistics of each",
                            m->d.field, (long long)m->n_stats);
    m->cell = TY_NEW_ARRAY(m->arena, map_cell, m->n_stats);
    int64_t room = MAP_KEPT / m->n_stats;
    for (int64_t i = 0; i < m->n_stats; i++) {
        m->cell[i].raw.limit = m->cell[i].made.limit = room > 1024 ? room : 1024;
        m->cell[i].raw.keeps = m->d.missing == TY_MISSING_MEDIAN || m->d.missing == TY_MISSING_MOST_FREQUENT;
        m->cell[i].made.keeps = m->d.n_quantiles > 0;
    }
    return 0;
}

static int learn_number(ty_map *m, double v, int64_t i, ty_error *err)
{
    int64_t stat = m->n_stats > 1 ? i : 0;
    map_cell *c = &m->cell[stat];
    uint64_t number = (uint64_t)m->n_seen * (uint64_t)(m->n_cells / m->n_stats + 1) + (uint64_t)(i - stat);
    if (isnan(v) && m->d.missing == TY_MISSING_REFUSED)
        return map_refuse_missing(m, err);
    if (isnan(v) && m->d.missing != TY_MISSING_NUMBER) {
        c->n_missing++;
        return 0;
    }
    v = isnan(v) ? m->d.missing_number : v;
    if (!isfinite(v)) {
        ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": %g has no place in statistics", m->d.field, v);
        return ty_error_help(err, "take it out, or cut it: clip: [low, high] with statistics given by you");
    }
    if (learn_raw(m) && map_moments_see(&c->raw, v, number, err) < 0)
        return -1;
    v = map_make_number(m, v);
    if (!learn_made(m))
        return 0;
    if (isnan(v))
        return ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": log1p of a number below -1", m->d.field);
    return map_moments_see(&c->made, v, number, err);
}

static int learn_text(ty_map *m, ty_text text, ty_error *err)
{
    if (map_is_missing_text(text)) {
        if (m->d.missing == TY_MISSING_MOST_FREQUENT) {
            m->n_missing_text++;
            return 0;
        }
        if (m->d.missing != TY_MISSING_TEXT)
            return map_refuse_missing(m, err);
        text = m->fill_text;
    }
    return m->kind->see_text ? m->kind->see_text(m, text, 1, err) : 0;
}

static int learn_texts(ty_map *m, const ty_cells *cells, ty_error *err)
{
    char digits[32];
    ty_text text, piece;
    for (int64_t i = 0; i < ty_cells_own(cells); i++) {
        if (map_take_text(m, cells, i, digits, &text, err) < 0 || (!text.p && learn_text(m, text, err) < 0))
            return -1;
        while (map_next_piece(m, &text, &piece))
            if (learn_text(m, piece, err) < 0)
                return -1;
    }
    return 0;
}

int ty_map_see(ty_map *m, const ty_cells *cells, ty_error *err)
{
    double v;
    if (m->is_settled)
        return ty_error_set(err, TY_E_INTERNAL, "field \"%s\": a settled transform learns no more", m->d.field);
    if (cells->n == 0) {
        if (!map_has_list(m) && m->d.missing == TY_MISSING_REFUSED)
            return map_refuse_missing(m, err);
        m->n_absent += !map_has_list(m);
        m->n_seen++;
        return 0;
    }
    if (m->n_cells == 0 && learn_begin(m, cells->n, err) < 0)
        return -1;
    if (cells->n != m->n_cells && !map_has_list(m))
        return check_length(m, cells->n, err);
    if (m->kind->fits && m->kind->fits(m, cells, err) < 0)
        return -1;
    if (m->kind->wants_text) {
        if (learn_texts(m, cells, err) < 0)
            return -1;
    } else
        for (int64_t i = 0; i < cells->n; i++)
            if (map_take_number(m, cells, i, &v, err) < 0 || learn_number(m, v, i, err) < 0)
                return -1;
    m->n_seen++;
    return 0;
}

/* ---- settling ---- */

/* Samples without the field: their cells are as many as others', and all missing. */
static int settle_absent(ty_map *m, ty_error *err)
{
    for (int64_t k = 0; k < m->n_absent && m->kind->wants_text && m->n_cells > 0; k++)
        for (int64_t i = 0; i < m->n_cells; i++)
            if (learn_text(m, (ty_text){NULL, 0}, err) < 0)
                return -1;
    for (int64_t i = 0; i < m->n_stats && !m->kind->wants_text; i++) {
        int64_t times = m->n_absent * (m->n_stats > 1 ? 1 : m->n_cells);
        if (m->d.missing != TY_MISSING_NUMBER)
            m->cell[i].n_missing += times;
        for (int64_t k = 0; k < times && m->d.missing == TY_MISSING_NUMBER && learn_made(m); k++)
            if (map_moments_see(&m->cell[i].made, map_make_number(m, m->d.missing_number), UINT64_MAX / 2 + (uint64_t)k,
                                err) < 0)
                return -1;
    }
    m->n_absent = 0;
    return 0;
}

static int settle_too_large(const ty_map *m, const map_moments *s, const char *what, ty_error *err)
{
    ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": values from %g to %g have no %s that a number can hold",
                 m->d.field, s->min, s->max, what);
    return ty_error_help(err,
                         "look for wrong values with `trainyard data stats`, or take their logarithm (log1p: true)");
}

/* What stands for missing numbers; they count among those that are normalized, as in a pipeline that fills first. */
static int settle_fill(ty_map *m, int64_t i, ty_error *err)
{
    map_cell *c = &m->cell[i];
    if (c->raw.n == 0)
        return ty_error_set(err, TY_E_DATA, "field \"%s\": all values are missing, so that none can stand for them",
                            m->d.field);
    map_moments_sort(&c->raw);
    m->fill[i] = m->d.missing == TY_MISSING_MEAN     ? map_moments_mean(&c->raw)
                 : m->d.missing == TY_MISSING_MEDIAN ? map_moments_quantile(&c->raw, 0.5)
                                                     : map_moments_most_frequent(&c->raw);
    if (!isfinite(m->fill[i]))
        return settle_too_large(m, &c->raw, m->d.missing == TY_MISSING_MEAN ? "mean" : "median", err);
    double made = map_make_number(m, m->fill[i]);
    for (int64_t k = 0; k < c->n_missing && learn_made(m); k++)
        if (map_moments_see(&c->made, made, UINT64_MAX / 2 - (uint64_t)k, err) < 0)
            return -1;
    return 0;
}

static int settle_normalize(ty_map *m, int64_t i, ty_error *err)
{
    const map_moments *s = &m->cell[i].made;
    bool standard = m->d.normalize == TY_NORMALIZE_STANDARD;
    double divisor = standard ? map_moments_deviation(s) : s->max - s->min;
    m->shift[i] = standard ? map_moments_mean(s) : s->min;
    /* A constant whose deviation is the rounding of its mean becomes 0 too. */
    m->divisor[i] = divisor > fabs(map_moments_mean(s)) * 1e-14 ? divisor : 1;
    return isfinite(m->shift[i]) && isfinite(m->divisor[i])
               ? 0
               : settle_too_large(m, s, standard ? "mean and deviation" : "range", err);
}

static int settle_numbers(ty_map *m, ty_error *err)
{
    bool normalizes = m->d.normalize == TY_NORMALIZE_STANDARD || m->d.normalize == TY_NORMALIZE_MINMAX;
    if (learn_raw(m))
        m->fill = TY_NEW_ARRAY(m->arena, double, m->n_stats);
    if (normalizes) {
        m->shift = TY_NEW_ARRAY(m->arena, double, m->n_stats);
        m->divisor = TY_NEW_ARRAY(m->arena, double, m->n_stats);
    }
    for (int64_t i = 0; i < m->n_stats; i++) {
        if (m->fill && settle_fill(m, i, err) < 0)
            return -1;
        if (normalizes && settle_normalize(m, i, err) < 0)
            return -1;
    }
    return 0;
}

static int settle_words(ty_map *m, ty_error *err)
{
    if (m->d.missing != TY_MISSING_MOST_FREQUENT)
        return 0;
    const map_word *best = NULL;
    for (int64_t i = 0; i < m->words.n; i++) {
        const map_word *w = &m->words.word[i];
        if (!best || w->count > best->count || (w->count == best->count && strcmp(w->p, best->p) < 0))
            best = w;
    }
    if (!best) {
        ty_error_set(err, TY_E_DATA, "field \"%s\": all texts are missing, so that none can stand for them",
                     m->d.field);
        return ty_error_help(err, "say what stands for them, missing: TEXT, or leave the field out");
    }
    m->fill_text = (ty_text){best->p, best->n};
    return m->n_missing_text > 0 ? m->kind->see_text(m, m->fill_text, m->n_missing_text, err) : 0;
}

static void learn_drop(ty_map *m)
{
    for (int64_t i = 0; m->cell && i < m->n_stats; i++) {
        map_moments_drop(&m->cell[i].raw);
        map_moments_drop(&m->cell[i].made);
    }
    m->cell = NULL;
}

bool ty_map_has_seen(const ty_map *m)
{
    return m->n_cells > 0;
}

int ty_map_settle(ty_map *m, ty_error *err)
{
    int rc = 0;
    if (m->is_settled)
        return 0;
    if (m->n_cells == 0)
        return ty_error_set(err, TY_E_DATA, "field \"%s\": no sample has a value to learn from", m->d.field);
    rc = settle_absent(m, err);
    if (rc == 0)
        rc = m->kind->wants_text ? settle_words(m, err) : settle_numbers(m, err);
    if (rc == 0 && m->kind->settle)
        rc = m->kind->settle(m, err);
    learn_drop(m);
    m->is_settled = rc == 0;
    return rc;
}

/* ---- among ranks ---- */

void ty_map_forget(ty_map *m)
{
    learn_drop(m);
    m->n_seen = m->n_absent = m->n_cells = m->n_stats = m->n_missing_text = m->n_tags = 0;
    if (!m->d.word)
        m->words = (map_words){0};
}

typedef struct seen_head {
    int64_t n_seen, n_absent, n_cells, n_stats, n_missing_text, n_words;
} seen_head;

static void seen_add_moments(const map_moments *s, ty_buf *out)
{
    map_moments head = *s;
    head.kept = NULL;
    ty_buf_add(out, &head, sizeof head);
    ty_buf_add(out, s->kept ? (const void *)s->kept : "", (size_t)s->n_kept * sizeof *s->kept);
}

int ty_map_write_seen(const ty_map *m, ty_buf *out)
{
    seen_head head = {m->n_seen, m->n_absent, m->n_cells, m->n_stats, m->n_missing_text, m->words.n};
    ty_buf_add(out, &head, sizeof head);
    for (int64_t i = 0; i < m->n_stats; i++) {
        ty_buf_add(out, &m->cell[i].n_missing, sizeof m->cell[i].n_missing);
        seen_add_moments(&m->cell[i].raw, out);
        seen_add_moments(&m->cell[i].made, out);
    }
    for (int64_t i = 0; i < m->words.n; i++) {
        const map_word *w = &m->words.word[i];
        ty_buf_add(out, &w->count, sizeof w->count);
        ty_buf_add(out, &w->n, sizeof w->n);
        ty_buf_add(out, w->p, w->n);
    }
    return out->failed ? -1 : 0;
}

typedef struct seen_reader {
    const char *p, *end;
} seen_reader;

static bool seen_take(seen_reader *r, void *out, size_t n)
{
    if ((size_t)(r->end - r->p) < n)
        return false;
    memcpy(out, r->p, n);
    r->p += n;
    return true;
}

static int seen_join_moments(map_moments *m, seen_reader *r, ty_error *err)
{
    map_moments other;
    if (!seen_take(r, &other, sizeof other) || other.n_kept < 0 ||
        other.n_kept > (r->end - r->p) / (int64_t)sizeof(map_kept))
        return ty_error_set(err, TY_E_INTERNAL, "statistics of another rank are cut off");
    map_kept *kept = malloc((size_t)other.n_kept * sizeof *kept + 1);
    if (!kept)
        return ty_error_set(err, TY_E_LIMIT, "no memory for statistics of another rank");
    seen_take(r, kept, (size_t)other.n_kept * sizeof *kept);
    other.kept = kept;
    int rc = map_moments_join(m, &other, err);
    free(kept);
    return rc;
}

static int seen_join_words(ty_map *m, seen_reader *r, int64_t n, ty_error *err)
{
    int64_t count;
    uint32_t bytes;
    for (int64_t i = 0; i < n; i++) {
        if (!seen_take(r, &count, sizeof count) || !seen_take(r, &bytes, sizeof bytes) || r->end - r->p < bytes)
            return ty_error_set(err, TY_E_INTERNAL, "words of another rank are cut off");
        if (map_words_add(&m->words, m->arena, (ty_text){r->p, bytes}, count, err) < 0)
            return ty_error_wrap(err, "field \"%s\"", m->d.field);
        r->p += bytes;
    }
    return 0;
}

/* What a map can have seen. */
static bool seen_is_possible(const seen_head *h)
{
    return h->n_seen >= 0 && h->n_absent >= 0 && h->n_absent <= h->n_seen && h->n_cells >= 0 &&
           h->n_cells <= LEARN_MAX_CELLS && h->n_stats >= 0 && h->n_missing_text >= 0 && h->n_words >= 0;
}

int ty_map_join(ty_map *m, const void *seen, size_t n, ty_error *err)
{
    seen_reader r = {seen, (const char *)seen + n};
    seen_head head;
    if (!seen_take(&r, &head, sizeof head) || !seen_is_possible(&head))
        return ty_error_set(err, TY_E_INTERNAL, "statistics of another rank are cut off");
    if (m->n_cells == 0 && head.n_cells > 0 && learn_begin(m, head.n_cells, err) < 0)
        return -1;
    if (head.n_stats > 0 && head.n_stats != m->n_stats)
        return ty_error_set(err, TY_E_DATA, "field \"%s\": samples have %lld values here and %lld on another host",
                            m->d.field, (long long)m->n_cells, (long long)head.n_cells);
    m->n_seen += head.n_seen;
    m->n_absent += head.n_absent;
    m->n_missing_text += head.n_missing_text;
    for (int64_t i = 0; i < head.n_stats; i++) {
        int64_t missing;
        if (!seen_take(&r, &missing, sizeof missing))
            return ty_error_set(err, TY_E_INTERNAL, "statistics of another rank are cut off");
        m->cell[i].n_missing += missing;
        if (seen_join_moments(&m->cell[i].raw, &r, err) < 0 || seen_join_moments(&m->cell[i].made, &r, err) < 0)
            return -1;
    }
    return seen_join_words(m, &r, head.n_words, err);
}
