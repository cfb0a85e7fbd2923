/* keep.c - a settled map in a file and in words. */
#include "base/hash.h"
#include "container/input/map/kind.h"

#include <string.h>

static void keep_put_list(ty_json_writer *w, const char *key, const double *v, int64_t n)
{
    if (!v)
        return;
    ty_json_open_list(w, key);
    for (int64_t i = 0; i < n; i++)
        ty_json_put_float(w, NULL, v[i]);
    ty_json_close(w);
}

void ty_map_write(const ty_map *m, ty_json_writer *w, const char *key)
{
    bool fill = m->d.missing == TY_MISSING_MOST_FREQUENT && m->fill_text.p;
    ty_json_open_map(w, key);
    ty_json_put_int(w, "samples", m->n_seen);
    if (m->n_cells > 0 && !map_has_list(m))
        ty_json_put_int(w, "values", m->n_cells);
    keep_put_list(w, "missing", m->fill, m->n_stats);
    if (fill)
        ty_json_put_string(w, "missing", m->fill_text.p);
    keep_put_list(w, "subtract", m->shift, m->n_stats);
    keep_put_list(w, "divide", m->divisor, m->n_stats);
    if (m->kind->write)
        m->kind->write(m, w);
    ty_json_close(w);
}

static int keep_get_list(ty_map *m, const ty_doc *settled, const char *key, double **out, ty_error *err)
{
    const ty_doc *list = ty_doc_find(settled, key);
    if (!list || list->kind != TY_DOC_LIST || list->n_items == 0)
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": no list of numbers \"%s\" was kept", m->d.field, key);
    if (m->n_stats > 0 && list->n_items != m->n_stats)
        return ty_doc_error(list, err, TY_E_CONFIG, NULL, "field \"%s\": expected %lld numbers, found %u", m->d.field,
                            (long long)m->n_stats, list->n_items);
    m->n_stats = list->n_items;
    *out = TY_NEW_ARRAY(m->arena, double, m->n_stats);
    for (int64_t i = 0; i < m->n_stats; i++)
        if (ty_doc_float(&list->items[i], &(*out)[i], err) < 0)
            return -1;
    return 0;
}

static int keep_get_normalize(ty_map *m, const ty_doc *settled, ty_error *err)
{
    if (keep_get_list(m, settled, "subtract", &m->shift, err) < 0 ||
        keep_get_list(m, settled, "divide", &m->divisor, err) < 0)
        return -1;
    for (int64_t i = 0; i < m->n_stats; i++)
        if (m->divisor[i] == 0)
            return ty_error_set(err, TY_E_CONFIG, "field \"%s\": what was kept divides by 0", m->d.field);
    return 0;
}

static int keep_get_fill(ty_map *m, const ty_doc *settled, ty_error *err)
{
    const char *text;
    if (m->d.missing < TY_MISSING_MEAN)
        return 0;
    if (!m->kind->wants_text)
        return keep_get_list(m, settled, "missing", &m->fill, err);
    const ty_doc *d = ty_doc_find(settled, "missing");
    if (!d || ty_doc_string(d, &text, err) < 0)
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": no text for missing values was kept", m->d.field);
    text = ty_arena_strdup(m->arena, text);
    m->fill_text = (ty_text){text, strlen(text)};
    return 0;
}

int ty_map_read(ty_map *m, const ty_doc *settled, ty_error *err)
{
    bool learns = !m->is_settled;
    if (!learns)
        return 0;
    m->n_stats = 0;
    if (keep_get_fill(m, settled, err) < 0)
        return -1;
    if ((m->d.normalize == TY_NORMALIZE_STANDARD || m->d.normalize == TY_NORMALIZE_MINMAX) &&
        keep_get_normalize(m, settled, err) < 0)
        return -1;
    if (m->kind->read && !m->d.word && (m->d.way != TY_MAP_BUCKETS || m->d.n_quantiles > 0) &&
        m->kind->read(m, settled, err) < 0)
        return -1;
    const ty_doc *seen = ty_doc_find(settled, "samples"), *values = ty_doc_find(settled, "values");
    m->n_seen = seen && seen->kind == TY_DOC_INT ? seen->integer : 0;
    m->n_cells = values && values->kind == TY_DOC_INT ? values->integer : 0;
    m->is_settled = true;
    return 0;
}

static void describe_numbers(const ty_map *m, ty_buf *out)
{
    bool standard = m->d.normalize == TY_NORMALIZE_STANDARD;
    if (m->fill && m->n_stats == 1)
        ty_buf_addf(out, ", missing becomes %.6g", m->fill[0]);
    else if (m->fill)
        ty_buf_addf(out, ", missing becomes %.6g ... %.6g", m->fill[0], m->fill[m->n_stats - 1]);
    if (m->fill_text.p)
        ty_buf_addf(out, ", missing becomes \"%s\"", m->fill_text.p);
    if (!m->shift)
        return;
    ty_buf_addf(out, ", %s %.6g", standard ? "mean" : "min", m->shift[0]);
    if (m->n_stats > 1)
        ty_buf_addf(out, " ... %.6g", m->shift[m->n_stats - 1]);
    ty_buf_addf(out, ", %s %.6g", standard ? "deviation" : "range", m->divisor[0]);
    if (m->n_stats > 1)
        ty_buf_addf(out, " ... %.6g", m->divisor[m->n_stats - 1]);
}

void ty_map_describe(const ty_map *m, ty_buf *out)
{
    int64_t n = m->words.n;
    ty_buf_adds(out, m->kind->name);
    if (m->kind->n_ids)
        ty_buf_addf(out, ", %lld ids", (long long)m->kind->n_ids(m));
    describe_numbers(m, out);
    for (int64_t i = 0; i < n && i < 8; i++)
        ty_buf_addf(out, "%s%s", i ? " " : ": ", m->words.word[i].p);
    if (n > 8)
        ty_buf_addf(out, " ... %s", m->words.word[n - 1].p);
    for (int i = 0; i < m->n_boundaries && i < 8; i++)
        ty_buf_addf(out, "%s%.6g", i ? " " : ": ", m->boundary[i]);
    if (m->n_boundaries > 8)
        ty_buf_addf(out, " ... %.6g", m->boundary[m->n_boundaries - 1]);
}

static uint64_t print_text(uint64_t h, const char *s)
{
    return s ? ty_fnv1a(h, s, strlen(s) + 1) : ty_fnv1a(h, "\xff", 1);
}

uint64_t ty_map_fingerprint(const ty_map *m)
{
    const ty_map_spec *d = &m->d;
    double numbers[] = {d->scale, d->offset, d->missing_number, d->low, d->high, d->mean, d->deviation, d->pad};
    int64_t wholes[] = {d->way,         d->missing,
                        d->is_clipped,  d->log1p,
                        d->normalize,   d->bins,
                        d->n_oov,       d->left,
                        d->max_length,  d->one_hot,
                        d->one_row,     m->words.n,
                        d->split,       m->shift || m->fill ? m->n_stats : 0,
                        m->n_boundaries};
    uint64_t h = ty_fnv1a(TY_FNV_START, numbers, sizeof numbers);
    h = ty_fnv1a(h, wholes, sizeof wholes);
    uint64_t tokens[2] = {map_tokenizer_fingerprint(m), (uint64_t)d->token_part};
    int64_t second[3] = {d->parts, d->token_part == TY_TOKENS_PREVIOUS ? d->start : 0, m->n_tags};
    h = print_text(print_text(h, NULL), m->fill_text.p);
    if (d->tokenizer)
        h = ty_fnv1a(h, tokens, sizeof tokens);
    if (ty_map_hides(m))
        h = ty_fnv1a(h, &d->hidden, sizeof d->hidden);
    if (second[0] || second[1] || second[2])
        h = ty_fnv1a(h, second, sizeof second);
    for (int i = 0; i < d->n_cross; i++)
        h = print_text(h, d->cross[i]);
    for (int64_t i = 0; i < m->words.n; i++)
        h = print_text(h, m->words.word[i].p);
    if (m->boundary)
        h = ty_fnv1a(h, m->boundary, (size_t)m->n_boundaries * sizeof(double));
    if (m->shift)
        h = ty_fnv1a(ty_fnv1a(h, m->shift, (size_t)m->n_stats * sizeof(double)), m->divisor,
                     (size_t)m->n_stats * sizeof(double));
    return m->fill ? ty_fnv1a(h, m->fill, (size_t)m->n_stats * sizeof(double)) : h;
}
