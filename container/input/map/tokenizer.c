/* tokenizer.c - texts to the ids of their pieces, by a tokenizer.json; or what goes with these: the attention mask, the
 * token types, the ids to be foretold, the tags of words. */
#include "container/input/tokenizer/tokenizer.h"

#include "container/input/map/kind.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Tokenizers that are in use stay until the process ends: fields, training and validation data share one. */
typedef struct tokenizer_kept {
    ty_tokenizer *tokenizer;
    uint64_t fingerprint;
    struct tokenizer_kept *next;
} tokenizer_kept;

static tokenizer_kept *tokenizer_all;
static pthread_mutex_t tokenizer_lock = PTHREAD_MUTEX_INITIALIZER;

/* The one with this content, which is read each time: paths are used again. */
static int tokenizer_take(const char *path, ty_tokenizer **out, ty_error *err)
{
    ty_tokenizer *t;
    if (ty_tokenizer_load(path, &t, err) < 0)
        return -1;
    pthread_mutex_lock(&tokenizer_lock);
    tokenizer_kept *k = tokenizer_all;
    while (k != NULL && k->fingerprint != ty_tokenizer_fingerprint(t))
        k = k->next;
    tokenizer_kept *made = k == NULL ? calloc(1, sizeof *made) : NULL;
    if (made != NULL) {
        *made = (tokenizer_kept){.tokenizer = t, .fingerprint = ty_tokenizer_fingerprint(t), .next = tokenizer_all};
        tokenizer_all = made;
    }
    pthread_mutex_unlock(&tokenizer_lock);
    *out = k != NULL ? k->tokenizer : t;
    if (made == NULL)
        ty_tokenizer_free(t);
    return k != NULL || made != NULL ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for a tokenizer");
}

/* ---- the declaration ---- */

const char *const ty_token_parts[] = {[TY_TOKENS_IDS] = "ids",
                                      [TY_TOKENS_MASK] = "mask",
                                      [TY_TOKENS_TYPES] = "types",
                                      [TY_TOKENS_NEXT] = "next",
                                      [TY_TOKENS_MASKED] = "masked",
                                      [TY_TOKENS_HIDDEN] = "hidden",
                                      [TY_TOKENS_PREVIOUS] = "previous",
                                      [TY_TOKENS_TAGS] = "tags",
                                      [TY_TOKENS_BEGIN] = "answer_start",
                                      [TY_TOKENS_END] = "answer_end",
                                      NULL};

static bool map_has_second(const ty_map *m)
{
    return (m->d.parts & 1u << TY_PART_SECOND) != 0;
}

static double pieces_pad(const ty_map *m)
{
    double declared = m->d.pad;
    switch (m->d.token_part) {
    case TY_TOKENS_MASK:
        return 0;
    case TY_TOKENS_TYPES:
        return ty_tokenizer_pad_type(m->tokenizer);
    case TY_TOKENS_NEXT:
    case TY_TOKENS_HIDDEN:
    case TY_TOKENS_TAGS:
        return declared == 0 ? MAP_NOT_COUNTED : declared;
    default:
        return declared == 0 && ty_tokenizer_pad(m->tokenizer) > 0 ? ty_tokenizer_pad(m->tokenizer) : declared;
    }
}

/* Refuses what no sample would fit into: rows without room for special tokens, pairs of which the tokenizer does not
 * know how they are put together. */
static int pieces_frame(const ty_map *m, ty_error *err)
{
    enum { MOST = 256 }; /* special tokens of a tokenizer */
    int32_t ids[MOST];
    const ty_text none = {"", 0};
    ty_token_texts texts = {.word = &none};
    if (map_has_second(m) && m->d.token_part != TY_TOKENS_TAGS)
        texts.second = &none;
    int64_t length = m->d.max_length < MOST ? m->d.max_length : MOST;
    if (ty_tokenizer_encode_texts(m->tokenizer, &texts, length, ids, NULL, NULL, err) < 0)
        return ty_error_wrap(err, "field \"%s\"", m->d.field);
    return 0;
}

int map_pieces_prepare(ty_map *m, ty_error *err)
{
    ty_tokenizer *t;
    bool has_tags = m->d.token_part == TY_TOKENS_TAGS;
    if (m->d.tokenizer == NULL || m->d.one_row || m->d.split)
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": a tokenizer takes no split and makes no multi_hot",
                            m->d.field);
    if (has_tags && !map_has_second(m))
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": tags of which words? say words: NAME", m->d.field);
    if (tokenizer_take(m->d.tokenizer, &t, err) < 0)
        return ty_error_wrap(err, "field \"%s\"", m->d.field);
    m->tokenizer = t;
    m->d.left |= ty_tokenizer_fills_left(t);
    m->d.pad = pieces_pad(m);
    if (m->d.start < 0)
        m->d.start = ty_tokenizer_pad(t) > 0 ? ty_tokenizer_pad(t) : 0;
    if (m->d.start > INT32_MAX)
        return ty_error_set(err, TY_E_RANGE, "field \"%s\": start: %lld is no id", m->d.field, (long long)m->d.start);
    if (pieces_frame(m, err) < 0)
        return -1;
    return ty_map_hides(m) ? map_hide_prepare(m, err) : 0;
}

static int64_t pieces_n_ids(const ty_map *m)
{
    int64_t n = ty_tokenizer_size(m->tokenizer);
    if (m->d.token_part == TY_TOKENS_PREVIOUS && m->d.start >= n)
        return m->d.start + 1;
    return m->d.token_part == TY_TOKENS_MASK    ? 2
           : m->d.token_part == TY_TOKENS_TYPES ? ty_tokenizer_n_types(m->tokenizer, map_has_second(m))
                                                : n;
}

/* ---- a sample ---- */

/* Its cells as texts, with room for what has to be written out, and for what the tokenizer gives of `max` ids. */
typedef struct pieces_room {
    ty_text *text;  /* [cells->n] */
    int32_t *ids;   /* [max] */
    int32_t *word;  /* [max] */
    uint8_t *types; /* [max] */
    void *block;
} pieces_room;

static int pieces_open(const ty_map *m, const ty_cells *cells, int64_t max, pieces_room *r, ty_error *err)
{
    enum { DIGITS = 32 };
    size_t n = (size_t)cells->n, ids = (size_t)max;
    size_t bytes = n * (sizeof *r->text + DIGITS) + ids * (sizeof *r->ids + sizeof *r->word + 1);
    *r = (pieces_room){.block = malloc(bytes + 1)};
    if (r->block == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a text of %lld words", (long long)cells->n);
    r->text = r->block;
    r->ids = (int32_t *)(void *)(r->text + n);
    r->word = r->ids + ids;
    r->types = (uint8_t *)(r->word + ids);
    char *digits = (char *)r->types + ids;
    for (int64_t i = 0; i < cells->n; i++, digits += DIGITS) {
        if (map_take_text(m, cells, i, digits, &r->text[i], err) < 0)
            return -1;
        if (map_is_missing_text(r->text[i]))
            r->text[i] = m->fill_text;
        if (map_is_missing_text(r->text[i]))
            return map_refuse_missing(m, err);
    }
    return 0;
}

/* Both texts of a pair are there, or something stands for them; tags are as many as words. */
int map_pieces_fit(const ty_map *m, const ty_cells *cells, ty_error *err)
{
    int64_t n_first = ty_cells_own(cells), n_second = cells->n_part[TY_PART_SECOND];
    if (!map_has_second(m))
        return 0;
    if (m->d.token_part == TY_TOKENS_TAGS && n_first != n_second)
        return ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": %lld tags for %lld words", m->d.field,
                            (long long)n_first, (long long)n_second);
    if (!map_is_missing_text(m->fill_text))
        return 0;
    bool is_missing = n_first == 0 || n_second == 0;
    for (int64_t i = n_first; !is_missing && cells->kind == TY_CELLS_TEXTS && i < n_first + n_second; i++)
        is_missing = map_is_missing_text(cells->u.text[i]);
    return is_missing ? map_refuse_missing(m, err) : 0;
}

/* The first text and, of a pair, the second. Of tags the second are the words. */
static ty_token_texts pieces_texts(const ty_map *m, const ty_cells *cells, const pieces_room *r)
{
    int64_t n_first = ty_cells_own(cells), n_second = cells->n_part[TY_PART_SECOND];
    ty_token_texts texts = {.word = r->text, .n_words = n_first};
    if (m->d.token_part == TY_TOKENS_TAGS)
        return (ty_token_texts){.word = r->text + n_first, .n_words = n_second};
    if (map_has_second(m)) {
        texts.second = r->text + n_first;
        texts.n_second = n_second;
    }
    if (map_has_second(m) && texts.n_words == 0)
        texts.word = &m->fill_text, texts.n_words = 1;
    if (map_has_second(m) && texts.n_second == 0)
        texts.second = &m->fill_text, texts.n_second = 1;
    return texts;
}

/* A word's tag stands at its first piece. */
static int pieces_put_tags(const ty_map *m, const pieces_room *r, int64_t n, int64_t *out, ty_error *err)
{
    for (int64_t i = 0; i < n; i++) {
        int32_t word = r->word[i];
        out[i] = MAP_NOT_COUNTED;
        if (word >= 0 && (i == 0 || r->word[i - 1] != word) && map_tag_id(m, r->text[word], &out[i], err) < 0)
            return -1;
    }
    return 0;
}

/* Of n ids what is wanted; returns how many that are, at most max. */
static int64_t pieces_put(const ty_map *m, const pieces_room *r, int64_t n, int64_t max, int64_t *out, ty_error *err)
{
    int64_t n_later = n < max && !m->d.left ? n + 1 : n; /* rows that end together begin together */
    switch (m->d.token_part) {
    case TY_TOKENS_TAGS:
        return pieces_put_tags(m, r, n, out, err) < 0 ? -1 : n;
    case TY_TOKENS_NEXT:
        for (int64_t i = 0; i < n; i++)
            out[i] = i + 1 < n ? r->ids[i + 1] : (int64_t)m->d.pad;
        return n;
    case TY_TOKENS_PREVIOUS:
        for (int64_t i = 0; i < n_later; i++)
            out[i] = i > 0 ? r->ids[i - 1] : m->d.start;
        return n_later;
    default:
        for (int64_t i = 0; i < n; i++)
            out[i] = m->d.token_part == TY_TOKENS_MASK    ? 1
                     : m->d.token_part == TY_TOKENS_TYPES ? r->types[i]
                                                          : r->ids[i];
        return n;
    }
}

int64_t map_pieces_row(const ty_map *m, const ty_cells *cells, int64_t *out, int64_t max, ty_error *err)
{
    pieces_room room;
    int64_t n = -1;
    if (map_pieces_fit(m, cells, err) < 0)
        return -1;
    if (pieces_open(m, cells, max, &room, err) == 0) {
        const ty_token_texts texts = pieces_texts(m, cells, &room);
        n = ty_tokenizer_encode_texts(m->tokenizer, &texts, max, room.ids, room.types, room.word, err);
        if (n < 0)
            ty_error_wrap(err, "field \"%s\"", m->d.field);
    }
    if (n >= 0)
        n = pieces_put(m, &room, n, max, out, err);
    free(room.block);
    return n;
}

uint64_t map_tokenizer_fingerprint(const ty_map *m)
{
    return m->tokenizer != NULL ? ty_tokenizer_fingerprint(m->tokenizer) : 0;
}

const map_kind map_tokenizer = {.name = "tokenizer",
                                .wants_text = true,
                                .is_list = true,
                                .prepare = map_pieces_prepare,
                                .n_ids = pieces_n_ids,
                                .row_ids = map_pieces_row};
