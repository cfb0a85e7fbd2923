/* ways.c - the ways to an id: one row of functions for each. */
#include "base/doc_builder.h"
#include "container/input/map/fingerprint.h"
#include "container/input/map/kind.h"

#include <stdio.h>
#include <string.h>

static int ways_unknown(const ty_map *m, ty_text text, ty_error *err)
{
    char shown[64];
    ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": \"%s\" is none of its %lld %s", m->d.field, map_show(text, shown),
                 (long long)m->words.n,
                 m->d.way == TY_MAP_VOCABULARY ? "words" : "classes, which the training data have");
    if (m->d.way != TY_MAP_VOCABULARY)
        return ty_error_help(err, "name all of them: classes: [...], or take the samples out");
    return ty_error_help(err, "`oov: 1` gives an id to all words beside the vocabulary");
}

/* ---- words ---- */

static int words_see(ty_map *m, ty_text text, int64_t times, ty_error *err)
{
    if (map_words_add(&m->words, m->arena, text, times, err) < 0)
        return ty_error_wrap(err, "field \"%s\"", m->d.field);
    return 0;
}

static int words_given(ty_map *m, ty_error *err)
{
    for (int64_t i = 0; i < m->d.n_words; i++) {
        ty_text text = {m->d.word[i], strlen(m->d.word[i])};
        int64_t at = map_words_add(&m->words, m->arena, text, 0, err);
        if (at < 0)
            return -1;
        if (at < i)
            return ty_error_set(err, TY_E_CONFIG,
                                "field \"%s\": word \"%s\" stands twice in its list, as %lld and %lld", m->d.field,
                                m->d.word[i], (long long)at, (long long)i);
    }
    return 0;
}

static int64_t words_n_ids(const ty_map *m)
{
    return m->words.n + (m->d.way == TY_MAP_VOCABULARY ? m->d.n_oov : 0);
}

static int64_t words_ids(const ty_map *m, ty_text text, int64_t *out, int64_t max, ty_error *err)
{
    int64_t oov = m->d.way == TY_MAP_VOCABULARY ? m->d.n_oov : 0, at = map_words_find(&m->words, text);
    if (at < 0 && oov == 0)
        return ways_unknown(m, text, err);
    if (max > 0)
        *out = at >= 0 ? at + oov : oov > 1 ? (int64_t)(ty_fingerprint64(text.p, text.n) % (uint64_t)oov) : 0;
    return 1;
}

static void words_write(const ty_map *m, ty_json_writer *w)
{
    ty_json_open_list(w, "words");
    for (int64_t i = 0; i < m->words.n; i++)
        ty_json_put_string(w, NULL, m->words.word[i].p);
    ty_json_close(w);
}

static int words_read(ty_map *m, const ty_doc *settled, ty_error *err)
{
    const ty_doc *words = ty_doc_find(settled, "words");
    if (!words || words->kind != TY_DOC_LIST)
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": no list of words was kept", m->d.field);
    m->words = (map_words){0};
    for (uint32_t i = 0; i < words->n_items; i++) {
        const char *word;
        if (ty_doc_string(&words->items[i], &word, err) < 0)
            return -1;
        int64_t at = map_words_add(&m->words, m->arena, (ty_text){word, strlen(word)}, 0, err);
        if (at != (int64_t)i)
            return at < 0 ? -1
                          : ty_doc_error(&words->items[i], err, TY_E_CONFIG, NULL, "word \"%s\" stands twice", word);
    }
    return 0;
}

static int vocabulary_settle(ty_map *m, ty_error *err)
{
    map_words *w = &m->words;
    int64_t n = 0;
    if (m->d.word)
        return 0;
    map_words_by_count(w);
    while (n < w->n && w->word[n].count >= m->d.min_count && (m->d.max_size == 0 || n < m->d.max_size))
        n++;
    map_words_cut(w, n);
    if (n > 0)
        return 0;
    ty_error_set(err, TY_E_DATA, "field \"%s\": its vocabulary has no word: none is seen %lld times in %lld samples",
                 m->d.field, (long long)(m->d.min_count > 0 ? m->d.min_count : 1), (long long)m->n_seen);
    return ty_error_help(err, "lower min_count");
}

/* Labels that are all integers count as such: 2 comes before 10. */
static bool classes_number(const char *p, int64_t *out)
{
    const char *digits = p + (*p == '-');
    *out = 0;
    if (!*digits || strlen(digits) > 15 || strspn(digits, "0123456789") != strlen(digits))
        return false;
    for (; *digits; digits++)
        *out = *out * 10 + (*digits - '0');
    *out = *p == '-' ? -*out : *out;
    return true;
}

static int classes_settle(ty_map *m, ty_error *err)
{
    map_words *w = &m->words;
    int64_t v;
    bool all = true;
    if (m->d.word)
        return 0;
    if (w->n == 0)
        return ty_error_set(err, TY_E_DATA, "field \"%s\": no sample has a class", m->d.field);
    for (int64_t i = 0; all && i < w->n; i++)
        all = classes_number(w->word[i].p, &v);
    if (!all) {
        map_words_by_text(w);
        return 0;
    }
    for (int64_t i = 0; i < w->n; i++) { /* by_count puts the largest count first */
        classes_number(w->word[i].p, &v);
        w->word[i].count = -v;
    }
    map_words_by_count(w);
    return 0;
}

const map_kind map_vocabulary = {.name = "vocabulary",
                                 .wants_text = true,
                                 .prepare = words_given,
                                 .see_text = words_see,
                                 .settle = vocabulary_settle,
                                 .n_ids = words_n_ids,
                                 .text_ids = words_ids,
                                 .write = words_write,
                                 .read = words_read};
const map_kind map_classes = {.name = "classes",
                              .wants_text = true,
                              .prepare = words_given,
                              .see_text = words_see,
                              .settle = classes_settle,
                              .n_ids = words_n_ids,
                              .text_ids = words_ids,
                              .write = words_write,
                              .read = words_read};

/* ---- tags of words ---- */

/* Numbers are ids as they are, so that a tag which no sample has keeps its place; -100 does not count. */
static void tags_count(ty_map *m)
{
    int64_t v, most = -1;
    m->n_tags = 0;
    for (int64_t i = 0; i < m->words.n; i++) {
        if (!classes_number(m->words.word[i].p, &v) || (v < 0 && v != MAP_NOT_COUNTED) || v > INT32_MAX)
            return;
        most = v > most ? v : most;
    }
    m->n_tags = most + 1;
}

static int tags_prepare(ty_map *m, ty_error *err)
{
    m->d.token_part = TY_TOKENS_TAGS;
    return map_pieces_prepare(m, err) < 0 ? -1 : words_given(m, err);
}

static int tags_settle(ty_map *m, ty_error *err)
{
    int64_t v;
    if (!m->d.word)
        tags_count(m);
    if (!m->d.word && m->words.n == 1 && classes_number(m->words.word[0].p, &v) && v == MAP_NOT_COUNTED)
        return ty_error_set(err, TY_E_DATA, "field \"%s\": no word has a tag that counts: all are %d", m->d.field,
                            MAP_NOT_COUNTED);
    return classes_settle(m, err); /* tags that are numbers, too: samples may come in any order */
}

static int tags_read(ty_map *m, const ty_doc *settled, ty_error *err)
{
    if (words_read(m, settled, err) < 0)
        return -1;
    tags_count(m);
    return 0;
}

static int64_t tags_n_ids(const ty_map *m)
{
    return m->n_tags > 0 ? m->n_tags : m->words.n;
}

int map_tag_id(const ty_map *m, ty_text tag, int64_t *out, ty_error *err)
{
    char shown[64], digits[24];
    if (m->n_tags == 0) {
        *out = map_words_find(&m->words, tag);
        return *out < 0 ? ways_unknown(m, tag, err) : 0;
    }
    snprintf(digits, sizeof digits, "%.*s", tag.n < sizeof digits ? (int)tag.n : 0, tag.p);
    if (classes_number(digits, out) && (*out == MAP_NOT_COUNTED || (*out >= 0 && *out < m->n_tags)))
        return 0;
    return ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": expected a tag from 0 to %lld, found \"%s\"", m->d.field,
                        (long long)m->n_tags - 1, map_show(tag, shown));
}

const map_kind map_tags = {.name = "tags",
                           .wants_text = true,
                           .is_list = true,
                           .prepare = tags_prepare,
                           .see_text = words_see,
                           .fits = map_pieces_fit,
                           .settle = tags_settle,
                           .n_ids = tags_n_ids,
                           .row_ids = map_pieces_row,
                           .write = words_write,
                           .read = tags_read};

/* ---- hash ---- */

static int64_t hash_n_ids(const ty_map *m)
{
    return m->d.bins;
}

static int64_t hash_ids(const ty_map *m, ty_text text, int64_t *out, int64_t max, ty_error *err)
{
    (void)err;
    if (max > 0)
        *out = (int64_t)(ty_fingerprint64(text.p, text.n) % (uint64_t)m->d.bins);
    return 1;
}

const map_kind map_hash = {.name = "hash", .wants_text = true, .n_ids = hash_n_ids, .text_ids = hash_ids};
const map_kind map_crossed = {.name = "cross", .n_ids = hash_n_ids};

/* ---- buckets ---- */

static int buckets_prepare(ty_map *m, ty_error *err)
{
    m->n_boundaries = m->d.n_boundaries;
    m->boundary = ty_arena_copy(m->arena, m->d.boundary, (size_t)m->d.n_boundaries * sizeof(double));
    for (int i = 0; i < m->n_boundaries; i++)
        if (!(i == 0 ? m->boundary[0] == m->boundary[0] : m->boundary[i] > m->boundary[i - 1]))
            return ty_error_set(err, TY_E_RANGE, "field \"%s\": boundaries of buckets must rise: found %g as number %d",
                                m->d.field, m->boundary[i], i);
    return 0;
}

/* Boundaries at quantiles; several of one value are one. */
static int buckets_settle(ty_map *m, ty_error *err)
{
    map_moments *seen = &m->cell->made;
    if (m->d.n_quantiles == 0)
        return 0;
    if (seen->n == 0)
        return ty_error_set(err, TY_E_DATA, "field \"%s\": no sample has a value to find quantiles of", m->d.field);
    map_moments_sort(seen);
    m->boundary = TY_NEW_ARRAY(m->arena, double, m->d.n_quantiles);
    m->n_boundaries = 0;
    for (int i = 1; i < m->d.n_quantiles; i++) {
        double v = map_moments_quantile(seen, (double)i / m->d.n_quantiles);
        if (m->n_boundaries == 0 || v > m->boundary[m->n_boundaries - 1])
            m->boundary[m->n_boundaries++] = v;
    }
    return 0;
}

static int64_t buckets_n_ids(const ty_map *m)
{
    return m->n_boundaries + 1;
}

static int64_t buckets_id(const ty_map *m, double v)
{
    int low = 0, high = m->n_boundaries; /* how many boundaries are at most v */
    while (low < high) {
        int mid = (low + high) / 2;
        if (m->boundary[mid] <= v)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void buckets_write(const ty_map *m, ty_json_writer *w)
{
    ty_json_open_list(w, "boundaries");
    for (int i = 0; i < m->n_boundaries; i++)
        ty_json_put_float(w, NULL, m->boundary[i]);
    ty_json_close(w);
}

static int buckets_read(ty_map *m, const ty_doc *settled, ty_error *err)
{
    const ty_doc *list = ty_doc_find(settled, "boundaries");
    if (!list || list->kind != TY_DOC_LIST)
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": no boundaries of buckets were kept", m->d.field);
    m->boundary = TY_NEW_ARRAY(m->arena, double, list->n_items + 1);
    m->n_boundaries = (int)list->n_items;
    for (int i = 0; i < m->n_boundaries; i++)
        if (ty_doc_float(&list->items[i], &m->boundary[i], err) < 0)
            return -1;
        else if (i > 0 && !(m->boundary[i] > m->boundary[i - 1]))
            return ty_doc_error(&list->items[i], err, TY_E_RANGE, NULL, "boundaries of buckets must rise");
    return 0;
}

const map_kind map_buckets = {.name = "buckets",
                              .prepare = buckets_prepare,
                              .settle = buckets_settle,
                              .n_ids = buckets_n_ids,
                              .number_id = buckets_id,
                              .write = buckets_write,
                              .read = buckets_read};
const map_kind map_number = {.name = "number"};

/* ---- length ---- */

/* Any number may come. */
static int64_t length_n_ids(const ty_map *m)
{
    (void)m;
    return 0;
}

static int64_t length_words(ty_text text)
{
    int64_t n = 0;
    bool inside = false;
    for (size_t i = 0; i < text.n; i++) {
        bool is_blank = strchr(" \t\r\n\v\f", text.p[i]) != NULL && text.p[i] != 0;
        n += !is_blank && !inside;
        inside = !is_blank;
    }
    return n;
}

static int64_t length_characters(ty_text text)
{
    int64_t n = 0;
    for (size_t i = 0; i < text.n; i++)
        n += (text.p[i] & 0xc0) != 0x80;
    return n;
}

static int64_t length_ids(const ty_map *m, ty_text text, int64_t *out, int64_t max, ty_error *err)
{
    (void)err;
    if (max > 0)
        *out = m->d.measure == TY_MEASURE_WORDS    ? length_words(text)
               : m->d.measure == TY_MEASURE_FAULTS ? ty_utf8_fault(text.p, text.n) != NULL
               : m->d.measure == TY_MEASURE_TEXTS  ? 1
                                                   : length_characters(text);
    return 1;
}

const map_kind map_length = {.name = "length", .wants_text = true, .n_ids = length_n_ids, .text_ids = length_ids};
