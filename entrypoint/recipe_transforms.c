/* recipe_transforms.c - keys of a field that say what becomes of its values (container/input/map/map.h). */
#include "base/file.h"
#include "container/input/map/map.h"
#include "entrypoint/recipe_reader.h"

#include <string.h>

#define VOCABULARY_MAX_BYTES ((size_t)1 << 30)

static bool is_word(const ty_doc *d, const char *word)
{
    return d && d->kind == TY_DOC_STRING && strcmp(d->string, word) == 0;
}

static int refuse_value(recipe_reader *rd, const ty_doc *d, const char *key, const char *expected)
{
    char found[128];
    return ty_doc_error(d, rd->err, TY_E_TYPE, NULL, "%s: expected %s, found %s", key, expected,
                        ty_doc_describe(d, found, sizeof found));
}

static int read_numbers(recipe_reader *rd, const ty_doc *list, const char *key, const double **out, int *n)
{
    if (list->kind != TY_DOC_LIST)
        return refuse_value(rd, list, key, "a list of numbers");
    double *v = TY_NEW_ARRAY(rd->a, double, list->n_items + 1);
    for (uint32_t i = 0; i < list->n_items; i++)
        if (ty_doc_float(&list->items[i], &v[i], rd->err) < 0)
            return ty_error_wrap(rd->err, "%s", key);
    *out = v;
    *n = (int)list->n_items;
    return 0;
}

/* Words as they are spelled: 7 and true are texts here. */
static int read_words(recipe_reader *rd, const ty_doc *list, const char *key, const char *const **out, int64_t *n)
{
    const char **words = TY_NEW_ARRAY(rd->a, const char *, list->n_items + 1);
    for (uint32_t i = 0; i < list->n_items; i++) {
        const ty_doc *d = &list->items[i];
        if (d->kind == TY_DOC_LIST || d->kind == TY_DOC_MAP || d->kind == TY_DOC_NULL)
            return refuse_value(rd, d, key, "a text");
        words[i] = d->raw;
    }
    if (list->n_items == 0)
        return refuse_value(rd, list, key, "a list with at least one text");
    *out = words;
    *n = list->n_items;
    return 0;
}

/* A word a line; line ends of either kind. */
static int read_word_file(recipe_reader *rd, const char *path, ty_map_spec *spec)
{
    ty_buf text;
    int64_t n = 0;
    ty_buf_init(&text, VOCABULARY_MAX_BYTES);
    int rc = ty_file_read(path, &text, rd->err);
    for (size_t i = 0; rc == 0 && i < text.len; i++)
        n += text.data[i] == '\n';
    const char **words = TY_NEW_ARRAY(rd->a, const char *, n + 2);
    n = 0;
    for (const char *p = text.data, *end = p + text.len; rc == 0 && p < end;) {
        const char *line = memchr(p, '\n', (size_t)(end - p));
        const char *last = line ? line : end;
        size_t bytes = (size_t)(last - p) - (last > p && last[-1] == '\r');
        if (bytes > 0)
            words[n++] = ty_arena_strndup(rd->a, p, bytes);
        p = last + 1;
    }
    ty_buf_fini(&text);
    spec->word = words;
    spec->n_words = n;
    if (rc == 0 && n == 0)
        rc = ty_error_set(rd->err, TY_E_DATA, "%s holds no word", path);
    return rc;
}

static int read_vocabulary(recipe_reader *rd, const recipe_field *f, ty_map_spec *spec)
{
    const ty_doc *d = f->vocabulary;
    spec->way = TY_MAP_VOCABULARY;
    spec->n_oov = f->oov;
    spec->max_size = f->max_size;
    spec->min_count = f->min_count;
    if (is_word(d, "auto"))
        return 0;
    if (f->max_size > 0 || f->min_count > 0)
        return ty_doc_error(d, rd->err, TY_E_CONFIG, NULL, "max_size and min_count are for vocabulary: auto");
    if (d->kind == TY_DOC_LIST)
        return read_words(rd, d, "vocabulary", &spec->word, &spec->n_words);
    if (d->kind != TY_DOC_STRING)
        return refuse_value(rd, d, "vocabulary", "auto, a list of texts or the path of a file");
    return read_word_file(rd, ty_recipe_path(rd, d->string), spec);
}

static int read_buckets(recipe_reader *rd, const ty_doc *d, ty_map_spec *spec)
{
    int64_t n = 0;
    spec->way = TY_MAP_BUCKETS;
    if (d->kind == TY_DOC_LIST)
        return read_numbers(rd, d, "buckets", &spec->boundary, &spec->n_boundaries);
    const ty_doc *quantiles = ty_doc_find(d, "quantiles");
    if (!quantiles || d->n_items != 1)
        return refuse_value(rd, d, "buckets", "a list of boundaries, or {quantiles: N}");
    if (ty_doc_int(quantiles, &n, rd->err) < 0)
        return ty_error_wrap(rd->err, "buckets");
    if (n < 2 || n > 1 << 16)
        return ty_doc_error(quantiles, rd->err, TY_E_RANGE, NULL, "quantiles: expected 2 to 65536, found %lld",
                            (long long)n);
    spec->n_quantiles = (int)n;
    return 0;
}

static int read_normalize(recipe_reader *rd, const ty_doc *d, ty_map_spec *spec)
{
    const ty_doc *mean = ty_doc_find(d, "mean"), *deviation = ty_doc_find(d, "std");
    spec->normalize = is_word(d, "standard") ? TY_NORMALIZE_STANDARD
                      : is_word(d, "minmax") ? TY_NORMALIZE_MINMAX
                                             : TY_NORMALIZE_GIVEN;
    if (spec->normalize != TY_NORMALIZE_GIVEN)
        return 0;
    if (d->kind != TY_DOC_MAP || !mean || !deviation || d->n_items != 2)
        return refuse_value(rd, d, "normalize", "standard, minmax or {mean: M, std: S}");
    if (ty_doc_float(mean, &spec->mean, rd->err) < 0 || ty_doc_float(deviation, &spec->deviation, rd->err) < 0)
        return ty_error_wrap(rd->err, "normalize");
    return 0;
}

static int read_missing(recipe_reader *rd, const ty_doc *d, bool is_text, ty_map_spec *spec)
{
    static const struct {
        const char *word;
        ty_missing_kind kind;
    } words[] = {{"mean", TY_MISSING_MEAN}, {"median", TY_MISSING_MEDIAN}, {"most_frequent", TY_MISSING_MOST_FREQUENT}};
    if (!d || d->kind == TY_DOC_NULL)
        return 0;
    if (d->kind == TY_DOC_LIST || d->kind == TY_DOC_MAP)
        return refuse_value(rd, d, "missing", "a number or a text");
    for (size_t i = 0; i < N(words); i++)
        if (is_word(d, words[i].word) && !(is_text && words[i].kind != TY_MISSING_MOST_FREQUENT))
            spec->missing = words[i].kind;
    if (spec->missing)
        return 0;
    bool is_number = d->kind == TY_DOC_INT || d->kind == TY_DOC_FLOAT;
    spec->missing = is_number && !is_text ? TY_MISSING_NUMBER : TY_MISSING_TEXT;
    spec->missing_text = d->raw;
    return is_number && !is_text ? ty_doc_float(d, &spec->missing_number, rd->err) : 0;
}

static int read_hot(recipe_reader *rd, const ty_doc *d, const char *key, ty_map_spec *spec)
{
    if (!d)
        return 0;
    spec->one_hot = -1;
    if (is_word(d, "auto"))
        return 0;
    if (d->kind != TY_DOC_INT || d->integer < 1)
        return refuse_value(rd, d, key, "a width of 1 or more, or auto");
    spec->one_hot = d->integer;
    return 0;
}

static int read_classes(recipe_reader *rd, const ty_doc *d, ty_map_spec *spec)
{
    if (is_word(d, "auto"))
        return 0;
    if (d->kind != TY_DOC_LIST)
        return refuse_value(rd, d, "classes", "auto or a list of texts");
    return read_words(rd, d, "classes", &spec->word, &spec->n_words);
}

/* Either would make something else of the two texts than its name says. */
static int check_second(recipe_reader *rd, const recipe_field *f, bool has_tags)
{
    const ty_doc *wrong = has_tags ? f->pair : f->words;
    if (!wrong)
        return 0;
    ty_doc_error(wrong, rd->err, TY_E_CONFIG, NULL, "%s",
                 has_tags ? "pair is of two texts; tags are of words: NAME"
                          : "words have tags: they go with tokens: tags");
    return has_tags ? -1 : ty_error_help(rd->err, "a second text behind the first is pair: NAME");
}

/* Which of the ways to an id is declared; there is one at most. */
static int read_way(recipe_reader *rd, const ty_doc *node, const recipe_field *f, ty_map_spec *spec)
{
    int64_t n_cross = 0;
    bool has_tags = f->tokenizer && f->tokens == TY_TOKENS_TAGS;
    int n = (f->buckets != NULL) + (f->vocabulary != NULL) + (f->classes != NULL && !has_tags) +
            (f->hash > 0 && !f->cross) + (f->cross != NULL) + (f->tokenizer != NULL);
    if (n > 1)
        return ty_doc_error_key(
            node, rd->err, TY_E_CONFIG, NULL,
            "buckets, vocabulary, classes, hash, cross and tokenizer each make ids: give one of them");
    spec->bins = f->hash;
    if (f->hash > 0)
        spec->way = TY_MAP_HASH;
    if (f->tokenizer) {
        spec->way = has_tags ? TY_MAP_TAGS : f->tokens >= TY_TOKENS_BEGIN ? TY_MAP_ANSWER : TY_MAP_TOKENIZER;
        spec->tokenizer = ty_recipe_path(rd, f->tokenizer);
        spec->token_part = (ty_token_part)f->tokens;
        spec->hidden = f->hidden;
        if (check_second(rd, f, has_tags) < 0)
            return -1;
        if (f->hidden <= 0)
            return ty_doc_error(ty_doc_find(node, "hidden"), rd->err, TY_E_RANGE, NULL,
                                "hidden: expected a share above 0, found %g", f->hidden);
        return has_tags && f->classes ? read_classes(rd, f->classes, spec) : 0;
    }
    if (f->buckets)
        return read_buckets(rd, f->buckets, spec);
    if (f->vocabulary)
        return read_vocabulary(rd, f, spec);
    if (f->classes) {
        spec->way = TY_MAP_CLASSES;
        return read_classes(rd, f->classes, spec);
    }
    if (!f->cross)
        return 0;
    spec->way = TY_MAP_CROSS;
    if (f->cross->kind != TY_DOC_LIST)
        return refuse_value(rd, f->cross, "cross", "a list of fields");
    if (f->hash == 0)
        return ty_doc_error(f->cross, rd->err, TY_E_MISSING_KEY, NULL, "a cross needs its number of ids, hash: N");
    int rc = read_words(rd, f->cross, "cross", &spec->cross, &n_cross);
    spec->n_cross = (int)n_cross;
    return rc;
}

static bool has_transforms(const recipe_field *f)
{
    bool more_missing = f->missing && f->missing->kind == TY_DOC_STRING;
    return f->clip || f->normalize || f->buckets || f->vocabulary || f->classes || f->cross || f->one_hot ||
           f->multi_hot || f->pad || f->split || f->log1p || f->side || f->hash || f->tokenizer || f->pair ||
           f->words || more_missing;
}

static int read_lists(recipe_reader *rd, const ty_doc *node, const recipe_field *f, ty_map_spec *spec)
{
    spec->max_length = f->max_length;
    spec->left = f->side == 1;
    if (f->pad && ty_doc_float(f->pad, &spec->pad, rd->err) < 0)
        return ty_error_wrap(rd->err, "pad");
    if (f->split && strlen(f->split) != 1)
        return ty_doc_error_key(node, rd->err, TY_E_RANGE, NULL, "split: expected one character, found \"%s\"",
                                f->split);
    spec->split = f->split ? f->split[0] : 0;
    if (f->one_hot && f->multi_hot)
        return ty_doc_error(f->one_hot, rd->err, TY_E_CONFIG, NULL, "give one of one_hot and multi_hot");
    spec->one_row = f->multi_hot != NULL;
    return f->multi_hot ? read_hot(rd, f->multi_hot, "multi_hot", spec) : read_hot(rd, f->one_hot, "one_hot", spec);
}

int ty_recipe_read_transforms(recipe_reader *rd, const ty_doc *node, const recipe_field *f, ty_field *out)
{
    const double *clip;
    int n_clip = 0;
    if (!has_transforms(f))
        return 0;
    ty_map_spec spec = {.field = out->name, .scale = f->scale, .offset = f->offset, .log1p = f->log1p, .start = -1};
    for (int i = 0; i < TY_N_TEXT_PARTS; i++)
        spec.parts |= out->part[i] ? 1u << i : 0;
    if (f->start && ty_doc_int(f->start, &spec.start, rd->err) < 0)
        return ty_error_wrap(rd->err, "start");
    if (read_way(rd, node, f, &spec) < 0 || read_lists(rd, node, f, &spec) < 0 ||
        (f->normalize && read_normalize(rd, f->normalize, &spec) < 0))
        return -1;
    if (f->clip && (read_numbers(rd, f->clip, "clip", &clip, &n_clip) < 0 || n_clip != 2))
        return n_clip ? refuse_value(rd, f->clip, "clip", "[low, high]") : -1;
    if (f->clip) {
        spec.is_clipped = true;
        spec.low = clip[0];
        spec.high = clip[1];
    }
    bool is_text = spec.way == TY_MAP_HASH || spec.way == TY_MAP_VOCABULARY || spec.way == TY_MAP_CLASSES ||
                   spec.tokenizer != NULL;
    if (read_missing(rd, f->missing, is_text, &spec) < 0)
        return ty_error_wrap(rd->err, "missing");
    if (ty_map_new(&spec, rd->a, &out->map, rd->err) < 0) {
        char place[256];
        return ty_error_at(rd->err, "%s", ty_doc_place(node, place, sizeof place));
    }
    out->scale = 1; /* the map does all that */
    out->offset = 0;
    out->missing_given = spec.missing != TY_MISSING_REFUSED;
    return 0;
}

static bool is_cross(const ty_field *f)
{
    return f->map && ty_map_declared(f->map)->way == TY_MAP_CROSS;
}

static const ty_field *find_field(const ty_field *fields, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

int ty_recipe_order_crosses(recipe_reader *rd, const ty_doc *node, ty_field *fields, int n)
{
    ty_field *ordered = TY_NEW_ARRAY(rd->a, ty_field, n + 1);
    int k = 0;
    for (int crosses = 0; crosses < 2; crosses++)
        for (int i = 0; i < n; i++)
            if (is_cross(&fields[i]) == (crosses == 1))
                ordered[k++] = fields[i];
    for (int i = 0; i < n; i++) {
        const ty_map_spec *d = is_cross(&ordered[i]) ? ty_map_declared(ordered[i].map) : NULL;
        for (int c = 0; d && c < d->n_cross; c++) {
            const ty_field *f = find_field(fields, n, d->cross[c]);
            if (!f || is_cross(f)) {
                ty_doc_error(ty_doc_find(node, d->field), rd->err, TY_E_CONFIG, NULL,
                             "field \"%s\" crosses \"%s\", which is no field of the data", d->field, d->cross[c]);
                return ty_error_help(rd->err, "declare it beside: %s: {vocabulary: auto}", d->cross[c]);
            }
        }
    }
    memcpy(fields, ordered, (size_t)n * sizeof *fields);
    return 0;
}

int ty_recipe_share_transforms(recipe_reader *rd, const ty_recipe_data *train, ty_recipe_data *validation)
{
    if (validation->fields == train->fields || validation->n_fields == 0)
        return 0;
    ty_field *fields = ty_arena_copy(rd->a, validation->fields, (size_t)validation->n_fields * sizeof *fields);
    for (int i = 0; i < validation->n_fields; i++) {
        const ty_field *same = find_field(train->fields, train->n_fields, fields[i].name);
        if (!same)
            continue;
        if (fields[i].map && (!same->map || ty_map_fingerprint(fields[i].map) != ty_map_fingerprint(same->map))) {
            ty_doc_error_key(validation->at, rd->err, TY_E_CONFIG, NULL,
                             "field \"%s\" has other transforms in data.validation than in data.train", fields[i].name);
            return ty_error_help(rd->err, "leave them out there: those of data.train count");
        }
        if (!same->map)
            continue;
        fields[i].map = same->map;
        fields[i].scale = 1;
        fields[i].offset = 0;
        fields[i].missing_given = same->missing_given;
        fields[i].max_length = same->max_length;
    }
    validation->fields = fields;
    return 0;
}
