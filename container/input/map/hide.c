/* hide.c - words hidden in a text, for a network that is to find them. */
#include "base/rng.h"
#include "container/input/convert.h"
#include "container/input/map/kind.h"
#include "container/input/tokenizer/tokenizer.h"

#define HIDE_STREAM 0x48494445u /* "HIDE" */

enum {
    HIDE_WORDS = 1 << 20,   /* of random numbers, that a sample has */
    HIDE_EACH = 2,          /* of a place: whether, and what stands there */
    HIDE_BLOCK = 256,       /* places at a time */
    HIDE_EPOCH = 0x7fffffff /* of evaluation */
};

bool ty_map_hides(const ty_map *m)
{
    return m->d.way == TY_MAP_TOKENIZER && (m->d.token_part == TY_TOKENS_MASKED || m->d.token_part == TY_TOKENS_HIDDEN);
}

int map_hide_prepare(ty_map *m, ty_error *err)
{
    static const char *const usual[] = {"[MASK]", "<mask>", "<|mask|>"};
    m->mask_id = -1;
    for (size_t i = 0; i < sizeof usual / sizeof *usual && m->mask_id < 0; i++)
        m->mask_id = ty_tokenizer_id(m->tokenizer, usual[i]);
    if (m->mask_id < 0) {
        ty_error_set(err, TY_E_CONFIG, "field \"%s\": the tokenizer has no token that hides others", m->d.field);
        return ty_error_help(err, "it would be called [MASK], <mask> or <|mask|>");
    }
    if (m->d.hidden == 0)
        m->d.hidden = TY_MAP_HIDDEN;
    if (!(m->d.hidden > 0 && m->d.hidden < 1))
        return ty_error_set(err, TY_E_RANGE, "field \"%s\": hidden: expected a share between 0 and 1, found %g",
                            m->d.field, m->d.hidden);
    if (m->d.max_length >= HIDE_WORDS / HIDE_EACH || m->d.one_hot != 0)
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": words are hidden in rows of ids, of at most %d",
                            m->d.field, HIDE_WORDS / HIDE_EACH - 1);
    return 0;
}

/* What stands at a hidden place: the word's range is cut in ten. */
static int64_t hide_under(const ty_map *m, int64_t id, uint32_t word)
{
    const uint64_t tenth = (UINT64_C(1) << 32) / 10;
    if (word < 8 * tenth)
        return m->mask_id;
    return word < 9 * tenth ? (int64_t)((word - 8 * tenth) * (uint64_t)ty_tokenizer_size(m->tokenizer) / tenth) : id;
}

/* A row, a block of places at a time. */
typedef struct hide_row {
    const ty_map *m;
    ty_dtype dtype;
    char *row;
    const ty_chance *draw;
    int64_t n; /* places */
    int64_t at, n_block;
    int64_t ids[HIDE_BLOCK];
    uint32_t word[HIDE_EACH * HIDE_BLOCK];
} hide_row;

static void hide_draw(const hide_row *r, uint64_t first, int64_t n, uint32_t *out)
{
    const uint32_t epoch = r->draw->augment ? (uint32_t)r->draw->epoch : HIDE_EPOCH;
    ty_rng_words(r->draw->seed, HIDE_STREAM, epoch, (uint64_t)r->draw->sample * HIDE_WORDS + first, n, out);
}

/* The block behind the last one; false: there is none. */
static bool hide_next(hide_row *r)
{
    r->at += r->n_block;
    r->n_block = r->n - r->at < HIDE_BLOCK ? r->n - r->at : HIDE_BLOCK;
    if (r->n_block <= 0)
        return false;
    hide_draw(r, HIDE_EACH * (uint64_t)r->at, HIDE_EACH * r->n_block, r->word);
    ty_convert_to_i64(r->dtype, r->row + (size_t)r->at * ty_dtype_bytes(r->dtype), r->ids, r->n_block);
    return true;
}

/* Words, which may be hidden: no padding and nothing that is special. The id that fills rows up where the tokenizer
 * names none, 0, may be a word's: it is never hidden, in rows of labels neither, whose own padding is another. */
static bool hide_may(const hide_row *r, int64_t i)
{
    const int64_t id = r->ids[i];
    const int32_t pad = ty_tokenizer_pad(r->m->tokenizer);
    return id != (int64_t)r->m->d.pad && id != (pad > 0 ? pad : 0) && !ty_tokenizer_is_special(r->m->tokenizer, id);
}

static bool hide_does(const hide_row *r, int64_t i)
{
    return r->word[HIDE_EACH * i] < r->m->d.hidden * 0x1p32;
}

/* Which of its words is hidden in a row of which none would be; -1: some are, or it has none. */
static int64_t hide_forced(hide_row r)
{
    int64_t n_words = 0;
    uint32_t word;
    while (hide_next(&r))
        for (int64_t i = 0; i < r.n_block; i++) {
            bool may = hide_may(&r, i);
            if (may && hide_does(&r, i))
                return -1;
            n_words += may;
        }
    hide_draw(&r, HIDE_WORDS - 1, 1, &word);
    return n_words > 0 ? (int64_t)((uint64_t)word * (uint64_t)n_words >> 32) : -1;
}

void ty_map_hide(const ty_map *m, const ty_type *type, void *row, const ty_chance *draw)
{
    hide_row r = {.m = m, .dtype = (ty_dtype)type->dtype, .row = row, .draw = draw, .n = ty_type_elems(type)};
    const bool is_label = m->d.token_part == TY_TOKENS_HIDDEN;
    int64_t forced = hide_forced(r), n_words = 0;
    while (hide_next(&r)) {
        for (int64_t i = 0; i < r.n_block; i++) {
            bool may = hide_may(&r, i), hides = may && (hide_does(&r, i) || n_words == forced);
            n_words += may;
            if (is_label)
                r.ids[i] = hides ? r.ids[i] : (int64_t)m->d.pad;
            else if (hides)
                r.ids[i] = hide_under(m, r.ids[i], r.word[HIDE_EACH * i + 1]);
        }
        char *here = r.row + (size_t)r.at * ty_dtype_bytes(r.dtype);
        ty_dtype_is_integer(r.dtype) ? ty_convert_from_i64(r.dtype, r.ids, here, r.n_block)
                                     : ty_convert_scaled(TY_I64, r.ids, r.dtype, here, r.n_block, 1, 0);
    }
}
