/* answer.c - where the answer to a question is in the text that it was found in: the first and the last of its tokens
 * in the row that question and text make (ty_tokenizer_encode_texts), as Hugging Face's run_qa.py numbers them. An
 * answer that the row does not hold, and none, is at place 0, where there is the first special token.
 */
#include "container/input/map/kind.h"
#include "container/input/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

static int answer_prepare(ty_map *m, ty_error *err)
{
    const unsigned needed = 1u << TY_PART_SECOND | 1u << TY_PART_ANSWER;
    if (map_pieces_prepare(m, err) < 0)
        return -1;
    if ((m->d.parts & needed) != needed)
        return ty_error_set(err, TY_E_CONFIG,
                            "field \"%s\": an answer is found in a pair: say pair: NAME of the text and answer: NAME",
                            m->d.field);
    if (m->d.left || m->d.one_hot != 0)
        return ty_error_set(err, TY_E_UNSUPPORTED,
                            "field \"%s\": places of answers are numbers, in rows that are filled up on the right",
                            m->d.field);
    return 0;
}

static int64_t answer_n_ids(const ty_map *m)
{
    return m->d.max_length;
}

/* A sample's texts. */
typedef struct answer_texts {
    ty_text question, text, answer, place;
    bool has_answer, has_place;
} answer_texts;

static int answer_read(const ty_map *m, const ty_cells *cells, char digits[4][32], answer_texts *out, ty_error *err)
{
    int64_t n_own = ty_cells_own(cells), at = n_own;
    ty_text *to[] = {&out->text, &out->answer, &out->place};
    const int64_t *n = cells->n_part;
    if (n_own != 1 || n[TY_PART_SECOND] != 1)
        return n_own > 1 || n[TY_PART_SECOND] > 1
                   ? ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": expected one question and one text", m->d.field)
                   : map_refuse_missing(m, err);
    if (map_take_text(m, cells, 0, digits[3], &out->question, err) < 0)
        return -1;
    for (int i = 0; i < TY_N_TEXT_PARTS; at += n[i++])
        if (n[i] > 0 && map_take_text(m, cells, at, digits[i], to[i], err) < 0)
            return -1;
    out->has_answer = n[TY_PART_ANSWER] > 0 && out->answer.p && out->answer.n > 0;
    out->has_place = n[TY_PART_PLACE] > 0 && out->place.p;
    return out->question.p && out->text.p ? 0 : map_refuse_missing(m, err);
}

/* Bytes of the first n characters; -1: there are fewer. */
static int64_t answer_skip(ty_text text, int64_t n)
{
    size_t at = 0;
    for (; n >= 0 && at < text.n; at++)
        if (((unsigned char)text.p[at] & 0xc0) != 0x80 && n-- == 0)
            return (int64_t)at;
    return n == 0 ? (int64_t)at : -1;
}

static bool answer_is_at(const answer_texts *x, int64_t at)
{
    return at >= 0 && x->answer.n <= x->text.n - (size_t)at && memcmp(x->text.p + at, x->answer.p, x->answer.n) == 0;
}

/* The first place that reads like it; -1: none. */
static int64_t answer_search(const answer_texts *x)
{
    const char *end = x->text.p + x->text.n;
    for (const char *p = x->text.p; (p = memchr(p, x->answer.p[0], (size_t)(end - p))) != NULL; p++)
        if (answer_is_at(x, p - x->text.p))
            return p - x->text.p;
    return -1;
}

/* Where the answer begins, in bytes: as the data say or, where they do not, the first place that reads like it. */
static int64_t answer_find(const ty_map *m, const answer_texts *x, ty_error *err)
{
    char shown[64], said[64], digits[24] = "", *end = digits;
    int64_t at = -1;
    if (x->has_place) {
        if (x->place.n < sizeof digits)
            memcpy(digits, x->place.p, x->place.n);
        long long n = strtoll(digits, &end, 10);
        at = end > digits && *end == 0 && n >= 0 ? answer_skip(x->text, n) : -1;
        if (answer_is_at(x, at))
            return at;
        ty_error_set(err, TY_E_DATA_VALUE,
                     "field \"%s\": the answer \"%s\" is not where it is said to be, at character %s", m->d.field,
                     map_show(x->answer, shown), map_show(x->place, said));
        return ty_error_help(err,
                             "answer_start counts the characters of the text before the answer, not bytes or words");
    }
    at = answer_search(x);
    if (at >= 0)
        return at;
    return ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": the text does not have the answer \"%s\"", m->d.field,
                        map_show(x->answer, shown));
}

static int64_t answer_row(const ty_map *m, const ty_cells *cells, int64_t *out, int64_t max, ty_error *err)
{
    char digits[4][32];
    answer_texts x = {.has_answer = false};
    int64_t first = -1, last = -1;
    (void)max;
    *out = 0;
    if (answer_read(m, cells, digits, &x, err) < 0)
        return -1;
    if (!x.has_answer)
        return 1;
    int64_t at = answer_find(m, &x, err);
    const ty_token_texts texts = {.word = &x.question, .n_words = 1, .second = &x.text, .n_second = 1};
    if (at < 0 || ty_tokenizer_locate(m->tokenizer, &texts, (size_t)at, (size_t)at + x.answer.n, m->d.max_length,
                                      &first, &last, err) < 0)
        return -1;
    if (first >= 0)
        *out = m->d.token_part == TY_TOKENS_END ? last : first;
    return 1;
}

const map_kind map_answer = {
    .name = "answer", .wants_text = true, .prepare = answer_prepare, .n_ids = answer_n_ids, .row_ids = answer_row};
